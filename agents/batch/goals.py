"""Many goals folded at once, each equal to `games.tasks.goals.Goal` step for step, whatever its form.

All parts of all goals lie in one array, children of a part side by side; they are judged from the leaves upwards,
all parts of one kind and one height together. A part under a `then` counts only while it is that part's turn;
before and after, what it remembers (`visited`, `then`, `before`, `never`) does not change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.batch.grid import Bools, GridBatch, Ints
from games.errors import BadTask
from games.tasks.goals import BROKEN, HOLDS, OPEN, And, Before, Goal, Never, Part, Predicate, Then

_GOOD, _OPEN, _BAD = 0, 1, 2
"""Ranks: an `and` is as good as its worst part."""

_STATUS = np.array([HOLDS, OPEN, BROKEN], dtype=np.int8)
_BEFORE_RANK = np.array([_OPEN, _OPEN, _GOOD, _BAD], dtype=np.int8)


@dataclass
class _Node:
    """A part while the arrays are being made."""

    part: Part
    owner: int
    then: int
    """The number of the innermost `then` above, -1 if there is none."""
    turn: int
    """Which of its parts this one belongs to."""
    height: int = 0
    index: int = -1
    inner: "list[_Node]" = field(default_factory=list)


@dataclass
class _Group:
    """Parts of one kind and one height. `index`: where they stand; `first`: where their children begin."""

    kind: type[Part]
    index: Ints
    first: Ints
    lengths: Ints
    thens: Ints
    gather: Ints
    bounds: Ints


class GoalBatch:
    """One goal for each world of a `GridBatch`. Made at step 0; `fold` once after every step."""

    def __init__(self, batch: GridBatch, goals: Sequence[Goal]) -> None:
        if len(goals) != len(batch):
            raise BadTask(f"batch goals: got {len(goals)} of them, {len(batch)} worlds need one each")
        self._batch = batch
        nodes: list[_Node] = []
        thens: list[_Node] = []
        roots = [self._grow(goal.root, i, -1, 0, nodes, thens) for i, goal in enumerate(goals)]
        self._number(nodes, roots)
        self._owner = np.empty(len(nodes), dtype=np.intp)
        self._then = np.empty(len(nodes), dtype=np.intp)
        self._turn = np.empty(len(nodes), dtype=np.int8)
        for node in nodes:
            self._owner[node.index] = node.owner
            self._then[node.index] = node.then
            self._turn[node.index] = node.turn
        self._then_index = np.array([node.index for node in thens], dtype=np.intp)
        self._roots = np.array([root.index for root in roots], dtype=np.intp)
        self._leaves(batch, nodes)
        self._groups = list(self._grouped(nodes, thens))
        self._then_levels = list(self._leveled(thens))
        count = len(nodes)
        self._rank = np.full(count, _OPEN, dtype=np.int8)
        self._done = np.zeros(len(thens), dtype=np.int8)
        self._memory = np.zeros(count, dtype=np.int8)
        """What a part remembers: `visited` 1 once it was, `before` its stage, `never` 1 once it held."""
        self._active = np.ones(count, dtype=np.bool_)
        self.fold()
        self._initial = (self._rank.copy(), self._done.copy(), self._memory.copy())

    def _grow(
        self, part: Part, owner: int, then: int, turn: int, nodes: list[_Node], thens: list[_Node]
    ) -> _Node:
        node = _Node(part, owner, then, turn)
        nodes.append(node)
        if isinstance(part, Then):
            own = len(thens)
            thens.append(node)
            node.inner = [
                self._grow(inner, owner, own, i, nodes, thens) for i, inner in enumerate(part.inner)
            ]
        else:
            node.inner = [self._grow(inner, owner, then, turn, nodes, thens) for inner in part.parts()]
        node.height = 1 + max((inner.height for inner in node.inner), default=-1)
        return node

    def _number(self, nodes: list[_Node], roots: list[_Node]) -> None:
        """Give the children of one part numbers that follow each other."""
        number = 0
        for group in (roots, *(node.inner for node in nodes)):
            for node in group:
                node.index = number
                number += 1

    def _leaves(self, batch: GridBatch, nodes: list[_Node]) -> None:
        """Look up where each predicate's fact stands."""
        where, values, index, visited = [], [], [], []
        for node in nodes:
            if isinstance(node.part, Predicate):
                atom = batch.atom(node.owner, node.part.fact)
                if atom is None:
                    names = " ".join(node.part.fact)
                    raise BadTask(f"batch goals[{node.owner}]: its world has nothing like {names!r}")
                where.append(atom[0])
                values.append(atom[1])
                index.append(node.index)
                if node.part.fact[0] == "visited":
                    visited.append(node.index)
        self._fact_where = np.array(where, dtype=np.intp)
        self._fact_value = np.array(values, dtype=np.uint8)
        self._fact_index = np.array(index, dtype=np.intp)
        self._visited = np.array(visited, dtype=np.intp)

    def _grouped(self, nodes: list[_Node], thens: list[_Node]) -> Iterator[_Group]:
        order = {id(node): k for k, node in enumerate(thens)}
        found: dict[tuple[int, int], list[_Node]] = {}
        kinds = (And, Then, Before, Never)
        for node in nodes:
            if node.inner:
                found.setdefault((node.height, kinds.index(type(node.part))), []).append(node)
        for (_, kind), members in sorted(found.items(), key=lambda item: item[0]):
            first = np.array([node.inner[0].index for node in members], dtype=np.intp)
            lengths = np.array([len(node.inner) for node in members], dtype=np.intp)
            gather = np.array([inner.index for node in members for inner in node.inner], dtype=np.intp)
            yield _Group(
                kind=kinds[kind],
                index=np.array([node.index for node in members], dtype=np.intp),
                first=first,
                lengths=lengths,
                thens=np.array([order.get(id(node), -1) for node in members], dtype=np.intp),
                gather=gather,
                bounds=np.concatenate(([0], np.cumsum(lengths)[:-1])),
            )

    def _leveled(self, thens: list[_Node]) -> Iterator[Ints]:
        """Yield the parts under a `then`, those under the outermost ones first."""
        depth = np.zeros(len(thens), dtype=np.intp)
        for k, node in enumerate(thens):
            depth[k] = 0 if node.then < 0 else depth[node.then] + 1
        below = np.flatnonzero(self._then >= 0)
        for level in range(int(depth.max(initial=-1)) + 1):
            yield below[depth[self._then[below]] == level]

    def fold(self) -> None:
        """Take in the facts that hold now, in every world."""
        rank, memory, active = self._rank, self._memory, self._active
        for below in self._then_levels:
            then = self._then[below]
            active[below] = (self._done[then] == self._turn[below]) & active[self._then_index[then]]
        rank[self._fact_index] = self._batch.values(self._fact_where) != self._fact_value
        seen = self._visited
        if len(seen):
            memory[seen] |= (rank[seen] == _GOOD) & active[seen]
            rank[seen] = 1 - memory[seen]
        for group in self._groups:
            index = group.index
            if group.kind is And:
                rank[index] = np.maximum.reduceat(rank[group.gather], group.bounds)
            elif group.kind is Then:
                self._fold_thens(group)
            elif group.kind is Before:
                self._fold_befores(group)
            else:
                memory[index] |= (rank[group.first] == _GOOD) & active[index]
                rank[index] = memory[index] * _BAD

    def _fold_thens(self, group: _Group) -> None:
        done = self._done[group.thens]
        ended = done == group.lengths
        now = self._rank[group.first + np.where(ended, 0, done)]
        active = self._active[group.index]
        done += active & ~ended & (now == _GOOD)
        self._done[group.thens] = done
        self._rank[group.index] = np.where(
            done == group.lengths, _GOOD, np.where(~ended & (now == _BAD), _BAD, _OPEN)
        )

    def _fold_befores(self, group: _Group) -> None:
        stage = self._memory[group.index]
        first = self._rank[group.first] == _GOOD
        second = self._rank[group.first + 1] == _GOOD
        after = np.where(second, np.where(stage == 1, 2, 3), np.where(first, 1, stage))
        after = np.where((stage < 2) & self._active[group.index], after, stage)
        self._memory[group.index] = after
        self._rank[group.index] = _BEFORE_RANK[after]

    def reset(self, which: Bools) -> None:
        """Bring the goals of the worlds in the mask `which` back to step 0; call it beside `GridBatch.reset`."""
        rank, done, memory = self._initial
        nodes = which[self._owner]
        self._rank[nodes] = rank[nodes]
        self._memory[nodes] = memory[nodes]
        if len(done):
            thens = which[self._owner[self._then_index]]
            self._done[thens] = done[thens]

    @property
    def status(self) -> NDArray[np.int8]:
        """The status of every goal: `OPEN`, `HOLDS` or `BROKEN` of `games.tasks.goals`."""
        found: NDArray[Any] = _STATUS[self._rank[self._roots]]
        return found
