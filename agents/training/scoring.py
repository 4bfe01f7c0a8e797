"""Log-probabilities of choices under the distribution they were sampled from, for any weights of the model.

The same arithmetic as the engines': temperature, then the constraint's mask, then the nucleus. With a nucleus the
chosen token always counts as part of it, or weights that have moved on could make what was sampled impossible.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from agents.training.batches import Pass

LOWEST = -50.0
"""Log-probability below which a divergence counts nothing more."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Of the choices of a pass.

    Args:
        logprobs: of the tokens that were chosen [choices].
        entropy: of the distributions, in nats [choices].
        listed: log-probabilities of all listed tokens [listed, widest]; minus infinity where barred.
        rest: of all tokens of the vocabulary, for the other choices [rest, vocabulary].
    """

    logprobs: Any
    entropy: Any
    listed: Any
    rest: Any


def score(
    model: Any,
    one: Pass,
    *,
    device: Any,
    precision: AbstractContextManager[Any],
    learn_entropy: bool = False,
) -> Scores:
    """Compute one pass through `model`, in `precision`, and return the scores of its choices.

    A gradient flows through the entropy only with `learn_entropy`: over a large vocabulary it takes memory.
    """
    with precision, _rows_alone(model, one, device):
        out = model(**_inputs(one, device), use_cache=False)
    return from_logits(_wide(out.logits[0]), one, device=device, learn_entropy=learn_entropy)


@contextmanager
def _rows_alone(model: Any, one: Pass, device: Any) -> Iterator[None]:
    """Let the model compute the logits of the needed rows alone: [1, rows, vocabulary], whatever tree they are of."""
    import torch

    rows = torch.from_numpy(one.rows).to(device)

    def gather(module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return (given[0].flatten(0, 1)[rows][None], *given[1:])

    hook = model.get_output_embeddings().register_forward_pre_hook(gather)
    try:
        yield
    finally:
        hook.remove()


def _wide(logits: Any) -> Any:
    """Return logits in at least float32."""
    import torch

    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _inputs(one: Pass, device: Any) -> dict[str, Any]:
    import numpy as np
    import torch

    trees, width = one.packs, one.width
    tokens = np.zeros((len(trees), width), dtype=np.int64)
    for place, tree in enumerate(trees):
        tokens[place, : len(tree.tokens)] = tree.tokens
    inputs = {"input_ids": torch.from_numpy(tokens).to(device)}
    # Without a mask attention costs half, and what fills up comes after the rest.
    if all(tree.is_path for tree in trees):
        return inputs
    depths = np.zeros_like(tokens)
    seen = np.zeros((len(trees), width, width), dtype=np.bool_)
    seen[:, np.arange(width), np.arange(width)] = True  # what fills up sees itself, for somebody must be seen
    for place, tree in enumerate(trees):
        size = len(tree.tokens)
        depths[place, :size] = tree.depths
        seen[place, :size, :size] = tree.ancestors()
    inputs["position_ids"] = torch.from_numpy(depths).to(device)
    inputs["attention_mask"] = torch.from_numpy(seen).to(device)[:, None]
    return inputs


def from_logits(logits: Any, one: Pass, *, device: Any, learn_entropy: bool = False) -> Scores:
    """Return the scores of a pass's choices from the logits of its rows [rows, vocabulary]."""
    import torch

    count = len(one.row)
    heat = torch.from_numpy(one.temperature).to(device, logits.dtype)
    row = torch.from_numpy(one.row).to(device)
    logprobs = torch.zeros(count, device=device, dtype=logits.dtype)
    entropy = torch.zeros_like(logprobs)
    narrow = bool((one.top_p < 1).any())
    top_p = torch.from_numpy(one.top_p).to(device, logits.dtype)
    tables: list[Any] = [None, None]
    if len(one.listed):
        at = torch.from_numpy(one.listed).to(device)
        barred = torch.from_numpy(one.barred).to(device)
        scores = logits[row[at]].gather(1, torch.from_numpy(one.ids).to(device)) / heat[at][:, None]
        scores = scores.masked_fill(barred, float("-inf"))
        column = torch.from_numpy(one.column).to(device)
        tables[0] = _normed(scores, column, top_p[at] if narrow else None)
        logprobs = logprobs.index_put((at,), tables[0].gather(1, column[:, None])[:, 0])
        entropy = entropy.index_put((at,), _entropy(tables[0] if learn_entropy else tables[0].detach()))
    if len(one.rest):
        at = torch.from_numpy(one.rest).to(device)
        scores = logits[row[at]] / heat[at][:, None]
        if one.masks:
            free = torch.ones_like(scores, dtype=torch.bool)
            for place, mask in one.masks.items():
                free[place] = torch.from_numpy(mask).to(device)
            scores = scores.masked_fill(~free, float("-inf"))
        column = torch.from_numpy(one.token[one.rest]).to(device)
        tables[1] = _normed(scores, column, top_p[at] if narrow else None)
        logprobs = logprobs.index_put((at,), tables[1].gather(1, column[:, None])[:, 0])
        entropy = entropy.index_put((at,), _entropy(tables[1] if learn_entropy else tables[1].detach()))
    return Scores(logprobs, entropy, tables[0], tables[1])


def exact_kl(new: Scores, reference: Scores, one: Pass) -> Any:
    """Return KL(new || reference) over all that was allowed [choices]; NaN for free text, where it is not summed.

    Listed choices are summed over their list, answers of a schema over the tokens that their mask allows.
    """
    import torch

    device = new.logprobs.device
    found = torch.full_like(new.logprobs, float("nan"))
    if len(one.listed):
        at = torch.from_numpy(one.listed).to(device)
        found = found.index_put((at,), _divergence(new.listed, reference.listed))
    if one.masks:
        places = sorted(one.masks)
        at = torch.from_numpy(one.rest[places]).to(device)
        found = found.index_put((at,), _divergence(new.rest[places], reference.rest[places]))
    return found


def _divergence(new: Any, other: Any) -> Any:
    # What is outside the other's nucleus is not infinitely far away, or one token would be the whole loss.
    apart = (new - other.clamp(min=LOWEST)).masked_fill(new == float("-inf"), 0.0)
    return (new.exp() * apart).sum(-1)


def _entropy(table: Any) -> Any:
    return -(table.exp() * table.masked_fill(table == float("-inf"), 0.0)).sum(-1)


def _normed(scores: Any, column: Any, top_p: Any) -> Any:
    import torch

    logprobs = torch.log_softmax(scores, -1)
    if top_p is None:
        return logprobs
    with torch.no_grad():
        ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
        mass = ordered.exp()
        beyond = (mass.cumsum(-1) - mass >= top_p[:, None]) & (top_p[:, None] < 1)
        beyond[:, 0] = False
        out = torch.zeros_like(beyond).scatter_(-1, order, beyond)
        out.scatter_(-1, column[:, None], torch.zeros_like(out[:, :1]))
    return torch.log_softmax(scores.masked_fill(out, float("-inf")), -1)
