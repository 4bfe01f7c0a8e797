"""Batches: completions laid out as trees of tokens, with the masks under which they were sampled.

Completions to the same prompt, and prompts that begin alike, share their tokens (`agents.policy.pretrain.packing`),
and a completion that occurs many times is computed once. Trees that share little stand side by side in one pass.
Tokens that were the only ones allowed were no choices: they are part of the text, and nothing is learned from them.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.errors import BadRollout, PolicyError
from agents.policy.base import Constraint
from agents.policy.constraints import Guides
from agents.policy.pretrain.packing import Encoded, Pack, pack

LITTLE = 0.25
"""Share of a path's tokens below which it has little in common with another."""
FILLING = 0.2
"""Share of a pass that may be there only to make its trees equally wide."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Choice(NamedTuple):
    """One token that was chosen: its place in the completion, and what was allowed there.

    `ids` lists what was allowed, or `mask` says it for each token of the vocabulary; neither: everything was.
    """

    place: int
    token: int
    ids: Ints | None
    mask: npt.NDArray[np.bool_] | None


class Asked(NamedTuple):
    """A completion as it is computed: equal ones are computed once."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    choices: tuple[str, ...] | None
    schema: str
    temperature: float
    top_p: float


@dataclass(frozen=True, slots=True)
class Decision:
    """A completion with the choices in it."""

    asked: Asked
    chosen: tuple[Choice, ...]

    @property
    def path(self) -> tuple[int, ...]:
        """Return its tokens up to the one that the last prediction is made from."""
        return (*self.asked.prompt_ids, *self.asked.token_ids)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one forward pass computes: trees side by side, and the choices that are predicted in them.

    Args:
        packs: the trees.
        decisions: the indices of the decisions in them, in order.
        rows: the nodes whose logits are needed, each tree's counted from its place times `width` [rows].
        row: of each choice, an index of `rows` [choices].
        token: of each choice [choices].
        temperature, top_p: of each choice [choices].
        listed: the choices whose allowed tokens are listed; the others are in `rest`.
        ids, barred: of those, the allowed tokens [listed, widest], and which entries are only there to fill up.
        column: of those, where the chosen token stands in `ids`.
        rest: the other choices.
        masks: by place in `rest`, of those not everything was allowed for, the mask [vocabulary].
        starts: where each decision's choices begin; one more entry ends the last.
    """

    packs: tuple[Pack, ...]
    decisions: tuple[int, ...]
    rows: Ints
    row: Ints
    token: Ints
    temperature: Floats
    top_p: Floats
    listed: Ints
    ids: Ints
    barred: npt.NDArray[np.bool_]
    column: Ints
    rest: Ints
    masks: dict[int, npt.NDArray[np.bool_]]
    starts: Ints

    @property
    def nodes(self) -> int:
        """Return how many tokens the pass computes, without those that only fill up."""
        return sum(len(one.tokens) for one in self.packs)

    @property
    def width(self) -> int:
        """Return the tokens of its largest tree."""
        return max(len(one.tokens) for one in self.packs)


@dataclass(slots=True)
class Encoder:
    """Finds the choices in completions.

    Args:
        guides: of the model's tokenizer.
        vocabulary_size: how many logits the model gives.
        ends: the tokens that end free text; those that end constrained answers are the guides' own.
    """

    guides: Guides
    vocabulary_size: int
    _known: dict[Any, tuple[Choice, ...]] = field(default_factory=dict)

    def decide(self, asked: Asked, constraint: Constraint | None) -> Decision:
        """Return the completion with its choices. Raises `BadRollout` for tokens that were not allowed."""
        key = (asked.choices, asked.schema, asked.token_ids)
        found = self._known.get(key)
        if found is None:
            if max(asked.token_ids) >= self.vocabulary_size or min(asked.token_ids) < 0:
                raise BadRollout(
                    f"a completion has the token {max(asked.token_ids)}, the model has {self.vocabulary_size}: "
                    "it was written by another model"
                )
            found = self._known[key] = tuple(self._choices(asked.token_ids, constraint))
        if max(asked.prompt_ids) >= self.vocabulary_size:
            raise BadRollout("a prompt has tokens that the model has not: it was made for another model")
        return Decision(asked, found)

    def forget(self) -> None:
        """Let go of what was found for earlier completions."""
        self._known.clear()

    def _choices(self, token_ids: Sequence[int], constraint: Constraint | None) -> Iterable[Choice]:
        end = self.guides.vocabulary.end
        try:
            guide = self.guides.guide(constraint)
            for place, token in enumerate(token_ids):
                ids, mask = guide.ids, guide.mask
                if (ids is not None and token not in ids) or (mask is not None and not mask[token]):
                    raise BadRollout(
                        f"token {token} of a completion is none of those that were allowed: it was written by "
                        "another model, or under other constraints"
                    )
                if ids is None or len(ids) > 1:
                    yield Choice(place, token, ids, mask)
                if constraint is not None and token == end:
                    return
                guide.advance(token)
        except PolicyError as error:
            raise BadRollout(f"a completion does not fit its constraint: {error}") from None


def passes(
    decisions: Sequence[Decision],
    *,
    max_tokens: int,
    max_decisions: int,
    least_tokens: int | None = None,
    max_trees: int = 1,
) -> list[Pass]:
    """Return the forward passes that compute the choices of all decisions, each decision in one of them.

    Args:
        decisions: in any order; those without choices are left out.
        max_tokens: of a tree, unless one decision alone has more.
        max_decisions: of a pass.
        least_tokens: of a tree before it ends where the next decision shares little with the last: attention looks
            at all pairs of a tree's tokens. None ends none so.
        max_trees: of a pass, side by side; those of about the same width are put together.
    """
    trees = [_grown(one, decisions) for one in _trees(decisions, max_tokens, max_decisions, least_tokens)]
    trees.sort(key=lambda one: len(one[0].tokens))
    found: list[Pass] = []
    part: list[tuple[Pack, list[int]]] = []
    for tree in trees:
        held = sum(len(members) for _, members in part)
        sizes = [len(one.tokens) for one, _ in (*part, tree)]
        filling = 1 - sum(sizes) / (len(sizes) * max(sizes))
        full = len(part) >= max_trees or held + len(tree[1]) > max_decisions
        if part and (full or filling > FILLING or max(sizes) > max_tokens):
            found.append(_pass(part, decisions))
            part = []
        part.append(tree)
    if part:
        found.append(_pass(part, decisions))
    return found


def _trees(
    decisions: Sequence[Decision], max_tokens: int, max_decisions: int, least_tokens: int | None
) -> Iterator[list[int]]:
    """Yield which decisions are of one tree."""
    order = [index for index, one in enumerate(decisions) if one.chosen]
    order.sort(key=lambda index: decisions[index].path)
    members: list[int] = []
    nodes, last = 0, np.empty(0, dtype=np.int64)
    for index in order:
        path = np.array(decisions[index].path[:-1], dtype=np.int64)
        shared = _shared(last, path)  # of the tree, too: the paths are in order
        alone = least_tokens is not None and nodes >= least_tokens and shared < LITTLE * len(path)
        if members and (nodes + len(path) - shared > max_tokens or len(members) >= max_decisions or alone):
            yield members
            members, nodes, shared = [], 0, 0
        members.append(index)
        nodes, last = nodes + len(path) - shared, path
    if members:
        yield members


def _shared(one: Ints, other: Ints) -> int:
    """Return how many tokens two paths begin with alike."""
    size = min(len(one), len(other))
    apart = np.flatnonzero(one[:size] != other[:size])
    return int(apart[0]) if len(apart) else size


def _grown(members: list[int], decisions: Sequence[Decision]) -> tuple[Pack, list[int]]:
    asked = [decisions[index].asked for index in members]
    encoded = [Encoded(one.prompt_ids, one.token_ids, "") for one in asked]
    (tree,) = pack(encoded, max_nodes=sys.maxsize, max_decisions=len(members))
    return tree, members


def _pass(trees: Sequence[tuple[Pack, list[int]]], decisions: Sequence[Decision]) -> Pass:
    width = max(len(tree.tokens) for tree, _ in trees)
    members = [index for _, mine in trees for index in mine]
    chosen: list[tuple[int, Choice, Asked]] = []
    for place, (tree, mine) in enumerate(trees):
        # The tree lists every token of every completion in order; the choices are some of them.
        begin = np.searchsorted(tree.decisions, np.arange(len(mine)))
        chosen += [
            (place * width + int(tree.sources[int(begin[at]) + one.place]), one, decisions[index].asked)
            for at, index in enumerate(mine)
            for one in decisions[index].chosen
        ]
    node = np.array([at for at, _, _ in chosen], dtype=np.int64)
    rows, row = np.unique(node, return_inverse=True)
    listed = [at for at, (_, one, _) in enumerate(chosen) if one.ids is not None]
    rest = [at for at, (_, one, _) in enumerate(chosen) if one.ids is None]
    allowed = [chosen[at][1].ids for at in listed]
    widest = max((len(ids) for ids in allowed if ids is not None), default=1)
    ids = np.zeros((len(listed), widest), dtype=np.int64)
    barred = np.ones((len(listed), widest), dtype=np.bool_)
    column = np.zeros(len(listed), dtype=np.int64)
    for place, (at, own) in enumerate(zip(listed, allowed, strict=True)):
        assert own is not None
        ids[place, : len(own)] = own
        barred[place, : len(own)] = False
        column[place] = np.searchsorted(own, chosen[at][1].token)
    masks = {}
    for place, at in enumerate(rest):
        mask = chosen[at][1].mask
        if mask is not None:
            masks[place] = mask
    counts = [len(decisions[index].chosen) for index in members]
    return Pass(
        packs=tuple(tree for tree, _ in trees),
        decisions=tuple(members),
        rows=rows,
        row=row.reshape(-1).astype(np.int64),
        token=np.array([one.token for _, one, _ in chosen], dtype=np.int64),
        temperature=np.array([asked.temperature for *_, asked in chosen], dtype=np.float64),
        top_p=np.array([asked.top_p for *_, asked in chosen], dtype=np.float64),
        listed=np.array(listed, dtype=np.int64),
        ids=ids,
        barred=barred,
        column=column,
        rest=np.array(rest, dtype=np.int64),
        masks=masks,
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )
