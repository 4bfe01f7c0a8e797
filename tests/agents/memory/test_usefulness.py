import random

import pytest

from agents.memory.usefulness import Arms, gain


def drawn(rng: random.Random, share: float, count: int) -> int:
    return sum(rng.random() < share for _ in range(count))


def test_nothing_is_claimed_where_nothing_can_be_compared() -> None:
    assert gain([]) is None
    assert gain([Arms(9, 3), Arms(0, 0, 5, 2)]) is None


def test_few_attempts_claim_little() -> None:
    found = gain([Arms(1, 1, 1, 0)])
    assert found is not None
    assert found.interval[0] < 0 < found.interval[1]
    sure = gain([Arms(200, 150, 200, 100)])
    assert sure is not None
    assert sure.value == pytest.approx(0.25, abs=0.01)
    assert sure.interval[0] > 0.15
    assert sure.at_most(1.0) > sure.value > sure.at_most(-1.0)


def test_arms_are_counted_and_put_together() -> None:
    arms = (
        Arms()
        .add(advised=True, success=True)
        .add(advised=True, success=False)
        .add(advised=False, success=True)
    )
    assert arms == Arms(2, 1, 1, 1)
    assert arms.plus(arms) == Arms(4, 2, 2, 2)


def test_a_stratum_does_not_pass_for_a_gain() -> None:
    # Easy tasks mostly with advice, hard ones mostly without, and no gain in either.
    easy, hard = Arms(90, 81, 10, 9), Arms(10, 1, 90, 9)
    together = gain([easy.plus(hard)])
    apart = gain([easy, hard])
    assert together is not None and apart is not None
    assert together.value > 0.5
    assert apart.interval[0] < 0 < apart.interval[1]


def test_the_interval_holds_the_true_gain() -> None:
    # 600 draws; a 95 % interval misses 30 of them, give or take 3.3 standard errors (18).
    rng, held = random.Random(5), 0
    for _ in range(600):
        strata = [
            Arms(30, drawn(rng, 0.7, 30), 20, drawn(rng, 0.5, 20)),
            Arms(12, drawn(rng, 0.4, 12), 25, drawn(rng, 0.2, 25)),
        ]
        found = gain(strata)
        assert found is not None
        held += found.interval[0] <= 0.2 <= found.interval[1]
    assert 552 <= held <= 588
