"""The training loop: Muon and AdamW, a cosine schedule, one pass over the data.

The loss is the cross-entropy of the answers' tokens, every decision of a kind (game, side, label) weighing alike and
rare kinds more than frequent ones, by the square root of how much rarer they are, so that a hundred votes do not
drown one assassination. To it comes a share of the cross-entropy of the prompts' own tokens: they are there anyway,
ten times as many, and learning to foretell what the others say and do is most of learning to say and do it.

The matrices are trained by Muon (Keller Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024),
which needs far fewer steps here than AdamW; embeddings and norms by AdamW.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.policy.pretrain.packing import ROOT, Pack, tensors

MAX_GRAD_NORM = 1.0
HEAVIEST, LIGHTEST = 6.0, 0.4
"""Bounds of a decision's weight."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train.

    Args:
        step_nodes: nodes of the trees that make one step, about.
        learning_rate: of the matrices and norms, at the peak.
        embedding_rate: of the embeddings, at the peak.
        warmup: share of the steps until the peak.
        final: share of the peak that is left at the end.
        weight_decay: of the matrices.
        betas: AdamW's.
        prompt_share: weight of the prompts' own tokens, in the mean, beside the answers'.
    """

    step_nodes: int = 768
    learning_rate: float = 4e-3
    embedding_rate: float = 3e-2
    warmup: float = 0.04
    final: float = 0.02
    weight_decay: float = 0.02
    betas: tuple[float, float] = (0.9, 0.97)
    prompt_share: float = 0.5


class Point(NamedTuple):
    """One point of the training curve; the loss is the mean over the steps since the last point, in nats a token."""

    step: int
    loss: float
    learning_rate: float
    seconds: float


def kind_weights(packs: Sequence[Pack]) -> dict[str, float]:
    """Return what each kind of decision weighs, by how often it occurs."""
    counts = Counter(kind for pack in packs for kind in pack.kinds)
    typical = sum(n * math.sqrt(n) for n in counts.values()) / sum(counts.values())
    return {kind: min(max(typical / math.sqrt(n), LIGHTEST), HEAVIEST) for kind, n in counts.items()}


def steps_of(packs: Sequence[Pack], *, seed: int, step_nodes: int) -> list[list[Pack]]:
    """Return the trees shuffled and dealt into steps of about `step_nodes` nodes."""
    order = np.random.default_rng(seed).permutation(len(packs))
    steps: list[list[Pack]] = [[]]
    nodes = 0
    for i in order:
        if steps[-1] and nodes + len(packs[i].tokens) > step_nodes * 1.1:
            steps.append([])
            nodes = 0
        steps[-1].append(packs[i])
        nodes += len(packs[i].tokens)
    return steps


def train(
    model: Any,
    steps: Sequence[Sequence[Pack]],
    *,
    weights: dict[str, float],
    recipe: Recipe,
    every: int = 25,
    report: Callable[[Point, int], None] | None = None,
) -> list[Point]:
    """Train `model` in place, one pass over `steps`, and return the curve, a point each `every` steps."""
    import torch

    optimizers = _optimizers(model, recipe)
    curve: list[Point] = []
    began, losses = time.perf_counter(), 0.0
    model.train()
    for step, packs in enumerate(steps):
        height = _schedule(step, len(steps), recipe)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * height
            optimizer.zero_grad(set_to_none=True)
        shares = [np.array([weights[kind] for kind in pack.kinds], dtype=np.float32) for pack in packs]
        total = float(sum(share[pack.decisions].sum() for pack, share in zip(packs, shares, strict=True)))
        prompt = recipe.prompt_share / sum(len(pack.tokens) for pack in packs)
        for pack, share in zip(packs, shares, strict=True):
            answers, others = losses_of(model, pack)
            loss = (answers * torch.from_numpy(share[pack.decisions])).sum() / total
            (loss + prompt * others.sum()).backward()
            losses += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        for optimizer in optimizers:
            optimizer.step()
        if (step + 1) % every == 0 or step + 1 == len(steps):
            since = step - (curve[-1].step if curve else -1)
            point = Point(step, losses / since, recipe.learning_rate * height, time.perf_counter() - began)
            curve.append(point)
            losses = 0.0
            if report is not None:
                report(point, len(steps))
    model.eval()
    return curve


def _optimizers(model: Any, recipe: Recipe) -> list[Any]:
    import torch

    embedding = model.get_input_embeddings().weight
    matrices = [p for p in model.parameters() if p.ndim == 2 and p is not embedding]
    norms = [p for p in model.parameters() if p.ndim < 2]
    muon = torch.optim.Muon(
        matrices,
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        adjust_lr_fn="match_rms_adamw",  # so that one rate suits both optimisers
    )
    groups = [
        {"params": [embedding], "lr": recipe.embedding_rate},
        {"params": norms, "lr": recipe.learning_rate},
    ]
    adam = torch.optim.AdamW(groups, betas=recipe.betas, weight_decay=0.0)
    for optimizer in (muon, adam):
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return [muon, adam]


def losses_of(model: Any, pack: Pack) -> tuple[Any, Any]:
    """Return the negative log-likelihoods, in nats, of a tree's targets and of its nodes but the first."""
    import torch

    logits = node_logits(model, pack)
    inner = np.flatnonzero(pack.parents != ROOT)
    rows = np.concatenate([pack.sources, pack.parents[inner]]).astype(np.int64)
    tokens = np.concatenate([pack.targets, pack.tokens[inner]]).astype(np.int64)
    each = torch.nn.functional.cross_entropy(
        logits.index_select(0, torch.from_numpy(rows)), torch.from_numpy(tokens), reduction="none"
    )
    return each[: len(pack.sources)], each[len(pack.sources) :]


def node_logits(model: Any, pack: Pack) -> Any:
    """Return the logits after each of a tree's nodes: (nodes, vocabulary)."""
    return model(**tensors(pack), use_cache=False).logits[0]


def _schedule(step: int, steps: int, recipe: Recipe) -> float:
    warm = max(round(steps * recipe.warmup), 1)
    if step < warm:
        return (step + 1) / warm
    progress = (step - warm) / max(steps - warm, 1)
    return recipe.final + (1 - recipe.final) * 0.5 * (1 + math.cos(math.pi * progress))
