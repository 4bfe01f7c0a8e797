import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from games.errors import BadChance, BadSeed, ChanceNeeded
from games.rng import MAX_SEED, Chance, RecordedChance, check_seed, derive_seed

seeds = st.integers(0, MAX_SEED)


def test_first_numbers_stay_what_they_were() -> None:
    """Records depend on these numbers: a change here breaks every seed that anyone wrote down."""
    chance = Chance(0)
    assert [chance.draw(6) for _ in range(12)] == FIRST_DICE
    assert Chance(7).order(8) == ORDER_OF_SEVEN
    assert derive_seed(0, "seat", 3) == DERIVED


FIRST_DICE = [1, 0, 1, 4, 1, 0, 5, 2, 5, 2, 1, 4]
ORDER_OF_SEVEN = [3, 5, 4, 6, 0, 2, 1, 7]
DERIVED = 1709219872576955416


@pytest.mark.parametrize("n", [2, 3, 5, 7, 12])
def test_draws_are_uniform(n: int) -> None:
    counts = [0] * n
    for seed in range(200):
        chance = Chance(seed)
        for _ in range(100):
            counts[chance.draw(n)] += 1
    assert chisquare(counts).pvalue > 1e-4


def test_first_draws_of_neighbouring_seeds_are_uniform() -> None:
    counts = [0] * 6
    for seed in range(12_000):
        counts[Chance(seed).draw(6)] += 1
    assert chisquare(counts).pvalue > 1e-4


def test_orders_are_uniform() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(12_000):
        order = tuple(Chance(seed).order(4))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert chisquare(list(counts.values())).pvalue > 1e-4


@given(seeds, st.lists(st.integers(1, 50), max_size=20))
def test_a_copy_and_a_reloaded_source_make_the_same_draws(seed: int, sizes: list[int]) -> None:
    chance = Chance(seed)
    for n in sizes:
        chance.draw(n)
    twin, loaded = chance.copy(), Chance(chance.seed, chance.count)
    random.seed(0)
    assert (
        [chance.draw(9), *chance.order(5)]
        == [twin.draw(9), *twin.order(5)]
        == [loaded.draw(9), *loaded.order(5)]
    )


@given(seeds, st.lists(st.integers(1, 50), max_size=20))
def test_recorded_draws_are_read_back(seed: int, sizes: list[int]) -> None:
    chance = Chance(seed)
    values = [chance.draw(n) for n in sizes]
    recorded = RecordedChance([*values, [2, 0, 1]])
    assert [recorded.draw(n) for n in sizes] == values
    assert recorded.copy().order(3) == recorded.order(3) == [2, 0, 1]
    with pytest.raises(ChanceNeeded) as needed:
        recorded.draw(4)
    assert needed.value.outcomes == 4


@pytest.mark.parametrize("value", [3, -1, [0, 1], "0", None, 1.0, True])
def test_a_recorded_draw_must_fit(value: object) -> None:
    with pytest.raises(BadChance):
        RecordedChance([value]).draw(3)  # type: ignore[list-item]


@pytest.mark.parametrize("value", [0, [0, 1], [0, 0, 1], [0, 1, 3], [0, 1, 2, 3], ["a", "b", "c"], None])
def test_a_recorded_order_must_fit(value: object) -> None:
    with pytest.raises(BadChance):
        RecordedChance([value]).order(3)  # type: ignore[list-item]


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, True, 1.0, "1", None])
def test_a_bad_seed_says_what_is_allowed(seed: object) -> None:
    with pytest.raises(BadSeed, match=rf"allowed are whole numbers from 0 to {MAX_SEED}"):
        check_seed(seed)  # type: ignore[arg-type]


@given(seeds, st.lists(st.one_of(st.integers(), st.text()), max_size=4))
def test_derived_seeds_are_seeds(seed: int, path: list[int | str]) -> None:
    assert check_seed(derive_seed(seed, *path)) == derive_seed(seed, *path)


def test_derived_seeds_tell_paths_apart() -> None:
    paths: list[tuple[int | str, ...]] = [
        (),
        (1,),
        ("1",),
        (1, 2),
        ("12",),
        (12,),
        ("1", "2"),
        ("seat", 1),
        ("",),
    ]
    assert len({derive_seed(5, *path) for path in paths}) == len(paths)
