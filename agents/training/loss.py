"""The loss of GRPO, as one function of the tokens' log-probabilities.

For a token t with advantage A, ratio r = new / old and correction c = min(old / sampler, C), where `new` is the
policy that is trained, `old` the same at the start of the update and `sampler` as the engine computed it:

    surrogate  S = min(r A, clip(r, 1 - low, 1 + high) A), and at least D A where A < 0        (D is the dual clip)
    divergence K = q - log q - 1 with q = reference / new                                      (k3), or exactly
    loss       L = sum over t of w (-c S + kl K - entropy H)

The weights w hold what is averaged over what (`token_weights`), so a batch may be computed in any parts: their losses
and gradients simply add up.

Sources: Shao et al., "DeepSeekMath" (2024): GRPO and k3. Yu et al., "DAPO" (2025): the higher clip above, and the mean
over tokens. Ye et al., "Mastering Complex Control in MOBA Games" (2020): dual clip. Yao et al., "Your Efficient RL
Framework Secretly Brings You Off-Policy RL Training" (2025): truncated correction of the sampler's log-probabilities.
"""

from collections.abc import Sequence
from typing import Any

from agents.training.settings import LossSettings


def grpo_loss(
    new: Any,
    old: Any,
    advantages: Any,
    weights: Any,
    settings: LossSettings,
    *,
    sampler: Any = None,
    reference: Any = None,
    kl: Any = None,
    entropy: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Return the loss, and what it was made of.

    All tensors are of the same shape, one entry a token, natural logarithms; entries that are no tokens have the
    weight 0 and any finite numbers.

    Args:
        new: log-probabilities of the tokens under the weights that are trained; the gradient flows through them.
        old: the same before the update's first step.
        advantages: of the tokens.
        weights: of the tokens in the sum, as `token_weights` gives them.
        settings: clips and coefficients.
        sampler: log-probabilities under which the tokens were drawn; None corrects nothing.
        reference: log-probabilities under the reference, for k3.
        kl: the divergence from the reference where it is known exactly; NaN where `reference` is to be used.
        entropy: of the distributions that the tokens were drawn from, under `new`.

    Returns the loss, and as tensors without gradient the weighted sums of: `surrogate`, `kl`, `entropy`, `ratio`,
    `clipped` (share of tokens where a clip holds the ratio), `correction`, `truncated` (share where its bound holds)
    and `drift` (k3 of old and new).
    """
    import torch

    ratio = torch.exp(new - old)
    held = torch.clamp(ratio, 1 - settings.clip_low, 1 + settings.clip_high)
    surrogate = torch.minimum(ratio * advantages, held * advantages)
    if settings.dual_clip:
        surrogate = torch.where(
            advantages < 0, torch.maximum(surrogate, settings.dual_clip * advantages), surrogate
        )
    correction = torch.ones_like(old)
    truncated = torch.zeros_like(old)
    if sampler is not None and settings.max_correction:
        whole = torch.exp(old - sampler)
        correction = torch.clamp(whole, max=settings.max_correction)
        truncated = (whole > settings.max_correction).to(old.dtype)
    each = -correction.detach() * surrogate
    divergence = torch.zeros_like(new)
    if reference is not None:
        divergence = _k3(reference, new)
    if kl is not None:
        divergence = torch.where(torch.isnan(kl), divergence, torch.nan_to_num(kl))
    if settings.kl:
        each = each + settings.kl * divergence
    if settings.entropy and entropy is not None:
        each = each - settings.entropy * entropy
    loss = (weights * each).sum()
    with torch.no_grad():
        clipped = (surrogate != ratio * advantages).to(new.dtype)
        parts = {
            "surrogate": surrogate,
            "kl": divergence,
            "entropy": torch.zeros_like(new) if entropy is None else entropy,
            "ratio": ratio,
            "clipped": clipped,
            "correction": correction,
            "truncated": truncated,
            "drift": _k3(old, new),
        }
        stats = {name: (weights * part).sum().detach() for name, part in parts.items()}
    return loss, stats


def _k3(other: Any, new: Any) -> Any:
    """Return the estimate of KL(new || other) from samples of `new`: never negative, 0 where both are the same.

    Source: Schulman, "Approximating KL Divergence" (2020).
    """
    import torch

    log_ratio = other - new
    return torch.exp(log_ratio) - log_ratio - 1


def token_weights(sequences: Sequence[int], *, aggregate: str) -> list[float]:
    """Return the weight of each sequence's tokens, so that the weights of all tokens sum to 1.

    Args:
        sequences: how many tokens each trajectory has; some may have none.
        aggregate: `token` weighs all tokens alike, `sequence` all trajectories, and in each its tokens alike.
    """
    if aggregate == "token":
        total = sum(sequences)
        return [1 / total if total else 0.0] * len(sequences)
    filled = sum(1 for tokens in sequences if tokens)
    return [1 / (filled * tokens) if tokens else 0.0 for tokens in sequences]
