"""What prompts have in common is computed once: decisions packed as a tree of tokens.

The decisions of a match share its public history, so their prompts and answers are laid out as a tree: a token that
several share is one node. A node attends to its ancestors alone and its position is its depth, so each path through
the tree is computed exactly as if it stood alone. Where a prompt has 300 tokens, a decision costs about 50.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_NODES = 768
MAX_DECISIONS = 256
ROOT = -1


class Encoded(NamedTuple):
    """One decision as tokens; `answer` ends with the end token."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    kind: str
    """Game, side and label: what the decision is counted under."""


class Pack(NamedTuple):
    """A tree of decisions: (nodes,) arrays of the tree, and (targets,) arrays of what is to be predicted where."""

    tokens: NDArray[np.int32]
    parents: NDArray[np.int32]
    """Index of each node's parent, which stands before it; -1 for a first token."""
    depths: NDArray[np.int32]
    sources: NDArray[np.int32]
    """Node at which a target is predicted."""
    targets: NDArray[np.int32]
    decisions: NDArray[np.int32]
    """Decision that a target belongs to, as an index of `kinds`."""
    kinds: tuple[str, ...]

    @property
    def is_path(self) -> bool:
        """Whether no token has two after it: every node then attends to all before it."""
        return bool((self.parents == np.arange(-1, len(self.parents) - 1)).all())

    def ancestors(self) -> NDArray[np.bool_]:
        """Return a (nodes, nodes) array: whether the row's node may attend to the column's."""
        size = len(self.tokens)
        seen = np.zeros((size, size), dtype=np.bool_)
        for node, parent in enumerate(self.parents.tolist()):
            if parent != ROOT:
                seen[node] = seen[parent]
            seen[node, node] = True
        return seen


class _Tree:
    def __init__(self) -> None:
        self.children: dict[tuple[int, int], int] = {}
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.targets: list[tuple[int, int, int]] = []
        self.kinds: list[str] = []

    def missing(self, path: Sequence[int]) -> int:
        """Return how many nodes the path would add."""
        node = ROOT
        for i, token in enumerate(path):
            found = self.children.get((node, token))
            if found is None:
                return len(path) - i
            node = found
        return 0

    def add(self, decision: Encoded) -> None:
        node = ROOT
        for token in decision.prompt:
            node = self._step(node, token)
        for token in decision.answer[:-1]:
            self.targets.append((node, token, len(self.kinds)))
            node = self._step(node, token)
        self.targets.append((node, decision.answer[-1], len(self.kinds)))
        self.kinds.append(decision.kind)

    def _step(self, node: int, token: int) -> int:
        found = self.children.get((node, token))
        if found is None:
            found = self.children[node, token] = len(self.tokens)
            self.depths.append(0 if node == ROOT else self.depths[node] + 1)
            self.tokens.append(token)
            self.parents.append(node)
        return found

    def pack(self) -> Pack:
        targets = np.array(self.targets, dtype=np.int32)
        tokens, parents, depths = (
            np.array(values, dtype=np.int32) for values in (self.tokens, self.parents, self.depths)
        )
        sources, wanted, decisions = targets.T
        return Pack(tokens, parents, depths, sources, wanted, decisions, tuple(self.kinds))


def pack(
    decisions: Iterable[Encoded], *, max_nodes: int = MAX_NODES, max_decisions: int = MAX_DECISIONS
) -> Iterator[Pack]:
    """Yield trees of the decisions, in order; a decision is never split, so a long one may exceed `max_nodes`."""
    tree = _Tree()
    for decision in decisions:
        path = (*decision.prompt, *decision.answer[:-1])
        full = len(tree.tokens) + tree.missing(path) > max_nodes or len(tree.kinds) >= max_decisions
        if tree.kinds and full:
            yield tree.pack()
            tree = _Tree()
        tree.add(decision)
    if tree.kinds:
        yield tree.pack()


def tensors(pack: Pack) -> dict[str, Any]:
    """Return the model's inputs for one tree: ids and positions (1, nodes), mask (1, 1, nodes, nodes), additive."""
    import torch

    seen = torch.from_numpy(pack.ancestors())
    mask = torch.zeros(seen.shape, dtype=torch.float32).masked_fill_(~seen, torch.finfo(torch.float32).min)
    return {
        "input_ids": torch.from_numpy(pack.tokens.astype(np.int64))[None],
        "position_ids": torch.from_numpy(pack.depths.astype(np.int64))[None],
        "attention_mask": mask[None, None],
    }
