import math
from typing import Any

import pytest

from agents.training.settings import LossSettings

torch = pytest.importorskip("torch")

from agents.training.loss import grpo_loss, token_weights  # noqa: E402

DOUBLE = torch.float64


def t(*values: float) -> Any:
    return torch.tensor(values, dtype=DOUBLE)


def loss(
    new: Any, old: Any, advantages: Any, settings: LossSettings, **more: Any
) -> tuple[float, dict[str, float]]:
    weights = torch.full_like(new, 1 / len(new))
    value, stats = grpo_loss(new, old, advantages, weights, settings, **more)
    return float(value), {name: float(one) for name, one in stats.items()}


PLAIN = LossSettings(clip_low=0.2, clip_high=0.3, dual_clip=3.0)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 2.0, -2.0),
        (1.1, 2.0, -2.2),  # within the clip
        (1.5, 2.0, -2.6),  # held at 1.3
        (0.5, 2.0, -1.0),  # a good token that became rarer is not held back
        (0.5, -2.0, 1.6),  # a bad one is held at 0.8
        (0.9, -2.0, 1.8),
        (2.0, -2.0, 4.0),  # a bad one that became likelier is not
        (5.0, -2.0, 6.0),  # up to the dual clip, 3
        (5.0, 0.0, 0.0),
    ],
)
def test_clips_as_worked_by_hand(ratio: float, advantage: float, expected: float) -> None:
    old = t(math.log(0.1))
    value, stats = loss(old + math.log(ratio), old, t(advantage), PLAIN)
    assert value == pytest.approx(expected)
    assert stats["ratio"] == pytest.approx(ratio)
    held = expected != pytest.approx(-ratio * advantage)
    assert stats["clipped"] == (1.0 if held else 0.0)


def test_no_dual_clip_leaves_the_ratio_unbounded() -> None:
    value, _ = loss(t(math.log(0.5)), t(math.log(0.05)), t(-1.0), PLAIN.model_copy(update={"dual_clip": 0.0}))
    assert value == pytest.approx(10.0)


def test_two_tokens_worked_by_hand_with_everything() -> None:
    # Token 1: new 0.5, old 0.4, sampler 0.2, reference 0.25; token 2: new 0.3, old 0.5, sampler 0.4, reference 0.6.
    new, old = t(math.log(0.5), math.log(0.3)), t(math.log(0.4), math.log(0.5))
    sampler, reference = t(math.log(0.2), math.log(0.4)), t(math.log(0.25), math.log(0.6))
    settings = LossSettings(clip_low=0.2, clip_high=0.3, kl=0.1, entropy=0.01, max_correction=1.5)
    # Ratios 1.25 and 0.6; advantages 1 and -1: surrogates 1.25, and -0.8 (held). Corrections 2 -> 1.5, and 1.25.
    # k3: 0.5 + log 2 - 1 and 2 - log 2 - 1.
    k3 = (0.5 + math.log(2) - 1, 2 - math.log(2) - 1)
    each = (-1.5 * 1.25 + 0.1 * k3[0] - 0.01 * 0.7, 1.25 * 0.8 + 0.1 * k3[1] - 0.01 * 0.2)
    value, stats = loss(
        new, old, t(1.0, -1.0), settings, sampler=sampler, reference=reference, entropy=t(0.7, 0.2)
    )
    assert value == pytest.approx(sum(each) / 2)
    assert stats["kl"] == pytest.approx(sum(k3) / 2)
    assert stats["correction"] == pytest.approx((1.5 + 1.25) / 2)
    assert (stats["truncated"], stats["clipped"]) == (0.5, 0.5)
    assert stats["entropy"] == pytest.approx(0.45)


def test_a_divergence_that_is_known_takes_the_place_of_its_estimate() -> None:
    settings = LossSettings(kl=2.0)
    old = t(-1.0, -1.0)
    kl = t(0.3, math.nan)
    value, stats = loss(old, old, t(0.0, 0.0), settings, reference=t(-1.0, -2.0), kl=kl)
    k3 = math.exp(-1.0) + 1.0 - 1.0
    assert stats["kl"] == pytest.approx((0.3 + k3) / 2)
    assert value == pytest.approx(2 * (0.3 + k3) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_that_of_finite_differences(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def some(scale: float = 0.3) -> Any:
        return torch.randn(12, generator=generator, dtype=DOUBLE) * scale

    old = some() - 1.5
    new = (old + some(0.6)).requires_grad_()
    weights = torch.rand(12, generator=generator, dtype=DOUBLE)
    more = {"sampler": old + some(0.5), "reference": old + some(), "kl": None}
    settings = LossSettings(kl=0.4, entropy=0.2, max_correction=1.3, dual_clip=1.8)

    def value(given: Any) -> Any:
        # The entropy of a coin whose side came up, so that it has a gradient of its own.
        p = given.exp().clamp(max=0.99)
        entropy = -(p * p.log() + (1 - p) * (1 - p).log())
        return grpo_loss(given, old, advantages, weights, settings, entropy=entropy, **more)[0]

    advantages = some(2.0)
    (gradient,) = torch.autograd.grad(value(new), new)
    small = 1e-6
    for place in range(12):
        shift = torch.zeros(12, dtype=DOUBLE)
        shift[place] = small
        with torch.no_grad():
            slope = (value(new + shift) - value(new - shift)) / (2 * small)
        assert float(gradient[place]) == pytest.approx(float(slope), abs=1e-6)


def test_on_policy_the_gradient_is_that_of_reinforce() -> None:
    new = t(-1.0, -2.0, -0.5).requires_grad_()
    advantages = t(1.0, -2.0, 0.5)
    value, _ = grpo_loss(new, new.detach(), advantages, t(0.2, 0.3, 0.5), PLAIN)
    (gradient,) = torch.autograd.grad(value, new)
    assert torch.allclose(gradient, -t(0.2, 0.3, 0.5) * advantages)


def test_tokens_of_weight_zero_change_nothing() -> None:
    new, old = t(-1.0, -3.0), t(-1.1, -1.0)
    both, _ = grpo_loss(new, old, t(1.0, 5.0), t(1.0, 0.0), PLAIN)
    one, _ = grpo_loss(new[:1], old[:1], t(1.0), t(1.0), PLAIN)
    assert float(both) == float(one)


def test_parts_of_a_batch_add_up_to_it() -> None:
    new, old, advantages = t(-1.0, -2.0, -0.4, -0.9), t(-1.1, -1.5, -0.6, -0.9), t(1.0, -1.0, 2.0, 0.5)
    weights = t(0.25, 0.25, 0.25, 0.25)
    whole, _ = grpo_loss(new, old, advantages, weights, PLAIN)
    parts = [
        grpo_loss(new[i : i + 1], old[i : i + 1], advantages[i : i + 1], weights[i : i + 1], PLAIN)[0]
        for i in range(4)
    ]
    assert float(whole) == pytest.approx(float(sum(parts)), abs=1e-12)


def test_weights_of_tokens() -> None:
    assert token_weights([2, 6], aggregate="token") == [1 / 8, 1 / 8]
    assert token_weights([2, 0, 6], aggregate="sequence") == [1 / 4, 0.0, 1 / 12]
    assert (
        token_weights([0, 0], aggregate="token") == token_weights([0, 0], aggregate="sequence") == [0.0, 0.0]
    )
