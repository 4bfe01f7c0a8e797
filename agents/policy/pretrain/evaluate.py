"""How well a model answers as the bots did, on matches it was not trained on."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.policy.pretrain.packing import Encoded, pack
from agents.policy.pretrain.training import node_logits


class Score(NamedTuple):
    """One kind of decision on held-out matches.

    `loss` is in nats a decision. `accuracy` is the share of answers that the model finds likeliest, token by token,
    `majority` the share of the commonest answer: what is reached without reading the prompt. Bots draw some of their
    decisions, so neither the accuracy can come to 1 nor the loss to 0.
    """

    kind: str
    decisions: int
    loss: float
    accuracy: float
    majority: float


def score(model: Any, decisions: Sequence[Encoded]) -> list[Score]:
    """Return the scores of each kind, by name."""
    import torch

    losses: dict[str, list[float]] = defaultdict(list)
    right: Counter[str] = Counter()
    with torch.inference_mode():
        for tree in pack(decisions):
            logits = node_logits(model, tree)[torch.from_numpy(tree.sources.astype(np.int64))]
            targets = torch.from_numpy(tree.targets.astype(np.int64))
            each = torch.nn.functional.cross_entropy(logits, targets, reduction="none").numpy()
            hits = (logits.argmax(dim=-1) == targets).numpy()
            size = len(tree.kinds)
            sums = np.bincount(tree.decisions, each, minlength=size)
            misses = np.bincount(tree.decisions, ~hits, minlength=size)
            for kind, loss, missed in zip(tree.kinds, sums.tolist(), misses.tolist(), strict=True):
                losses[kind].append(loss)
                right[kind] += missed == 0
    answers: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for decision in decisions:
        answers[decision.kind][decision.answer] += 1
    return [
        Score(
            kind,
            len(losses[kind]),
            sum(losses[kind]) / len(losses[kind]),
            right[kind] / len(losses[kind]),
            answers[kind].most_common(1)[0][1] / len(losses[kind]),
        )
        for kind in sorted(losses)
    ]
