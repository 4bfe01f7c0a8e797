"""The scripted Avalon player: it reasons on the posterior of `agents.bots.avalon_belief`.

Good seats hold the public posterior restricted to what they know, and propose and vote for the teams that
are most likely safe. Merlin acts at times on what it knows, mostly once evil has two quests, and else as an
uninformed seat in its place would; the others act as often on a guess as if they knew, so that merlin does
not stand out. Evil speaks, proposes and votes as an uninformed good seat in its place would, except that it
takes along as many evil seats as the quest needs, votes for itself once a side has two quests, fails once
where once is enough, and names the seat that most behaved like merlin.
"""

import math
import random
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from agents.base import Bot, Decision, Seat
from agents.bots.avalon_belief import Array, Belief, Reader, Space, Tables, start_belief
from agents.bots.avalon_style import Style
from games.avalon import AvalonView
from games.avalon.rules import (
    APPROVE,
    EVIL,
    FAIL,
    MAX_REJECTIONS,
    MERLIN,
    MORDRED,
    MORGANA,
    OBERON,
    PERCIVAL,
    REJECT,
    SIDES,
    SUCCESS,
)
from games.base import Event
from games.referee import Turn
from games.rng import derive_seed
from games.spaces import Text


def known_mask(space: Space, view: AvalonView) -> Array:
    """Return a (sets, places) array: 1 where a hypothesis fits all that the view's seat knows, else 0.

    The public facts that the posterior has already excluded are not repeated here.
    """
    me, role, seen = view.seat, view.roles[view.seat or 0], set(view.seen)
    assert me is not None
    evil, good = space.evil, space.good
    rows = evil[:, me] > 0 if SIDES[role] == EVIL else good[:, me] > 0
    for quest in view.quests:
        if view.cards.get((quest.quest, me)) == FAIL:
            others = [seat for seat in quest.team if seat != me]
            rows = rows & (evil[:, others].sum(axis=1) >= quest.fails - 1)
    for examination in view.examinations:
        if examination.team is not None:
            rows = rows & ((evil[:, examination.target] > 0) == (examination.team == EVIL))
    if view.evil:
        rows = rows & (np.arange(len(space.sets)) == space.row[view.evil])
    mask = np.broadcast_to(rows[:, None], space.merlin.shape)
    for name, at in ((MERLIN, space.merlin), (MORDRED, space.mordred), (OBERON, space.oberon)):
        if name in space.deck:
            mask = mask & ((at == me) == (role == name))
    if view.evil and view.assassin is not None:
        mask = mask & (space.mordred != view.assassin) & (space.oberon != view.assassin)
    shown = evil[:, sorted(seen)].sum(axis=1)[:, None] == len(seen)
    if role == MERLIN:
        mask = mask & shown & ~np.isin(space.mordred, sorted(seen))
    elif SIDES[role] == EVIL and role != OBERON:
        mask = mask & shown & ~np.isin(space.oberon, sorted(seen))
    elif role == PERCIVAL:
        mask = mask & np.isin(space.merlin, sorted(seen))
        if MORGANA in space.deck:
            other = sum(seen) - np.where(np.isin(space.merlin, sorted(seen)), space.merlin, min(seen))
            mask = mask & (np.take_along_axis(evil, other, axis=1) > 0)
            mask = mask & (space.mordred != other) & (space.oberon != other)
    fits: Array = mask.astype(float)
    return fits


class AvalonBot(Bot):
    """Plays every role of Avalon."""

    tables: ClassVar[Tables | None] = None
    """Likelihoods to reason with; None means those that ship."""
    style: ClassVar[Style] = Style()
    view: AvalonView

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.belief: Belief | None = None
        self._reader = Reader()
        self._mask: tuple[object, Array] | None = None

    def observe(self, events: Sequence[Event]) -> None:
        super().observe(events)
        for event in events:
            item = self._reader.read(event)
            if event.kind == "start":
                self.belief = start_belief(tuple(event.data["deck"]), self.tables)
            elif item is not None and self.belief is not None:
                self.belief = self.belief.after(item)

    def posterior(self) -> Array:
        """Return the (sets, places) posterior given all that this seat knows; it sums to 1."""
        belief = self._believed()
        view = self.view
        key = (len(view.quests), len(view.examinations), view.evil)
        if self._mask is None or self._mask[0] != key:
            self._mask = (key, known_mask(belief.space, view))
        weights = belief.weights * self._mask[1]
        return np.asarray(weights / weights.sum())

    def suspicion(self) -> Array:
        """Return this seat's probability that each seat is evil."""
        return np.asarray(self.posterior().sum(axis=1) @ self._believed().space.evil)

    def decide(self, turn: Turn) -> Decision:
        rng = self.rng()
        match turn.space.label:
            case "speak":
                return Decision(_cut(self._speak(rng), turn))
            case "propose":
                return self._propose(rng)
            case "vote":
                return Decision(APPROVE if self._approves(rng) else REJECT)
            case "quest":
                return Decision(FAIL if self._fails(rng) else SUCCESS)
            case "lady":
                return Decision(str(self._examine(rng)))
            case "confer":
                return Decision(_cut(f"I take {self._merlin(rng)} for merlin.", turn))
            case "assassinate":
                target = self._merlin(rng)
                return Decision(str(target), thought=f"{target} behaved most like merlin.")
        return Decision(turn.space.default)

    def _believed(self) -> Belief:
        assert self.belief is not None, "no start event was observed"
        return self.belief

    @property
    def _me(self) -> int:
        return self.seat.seat

    @property
    def _role(self) -> str:
        return self.view.roles[self._me]

    @property
    def _is_evil(self) -> bool:
        return SIDES[self._role] == EVIL

    def _fellows(self) -> set[int]:
        """The evil seats that this seat knows of, itself included; empty for good."""
        return {self._me, *self.view.seen} if self._is_evil else set()

    def _needed(self) -> int:
        return self.view.fails_needed[self.view.quest - 1]

    def _facade(self) -> Array:
        """What an uninformed good seat in this place would think, by evil set."""
        belief = self._believed()
        mass = belief.plain[:, self._me]
        total = mass.sum()
        # where the public facts prove this seat evil there is no good seat to act as
        return np.asarray(mass / total if total > 1e-12 else belief.by_set)

    def _opinion(self, often: float, rng: random.Random) -> Array:
        """Return the probabilities, by evil set, that this seat acts on.

        Merlin acts `often` on what it knows, else as an uninformed seat would. So that merlin does not stand
        out, the others act at times on a guess drawn from what they (evil: seem to) think, as if they knew.
        """
        style = self.style
        mine = np.asarray(self.posterior().sum(axis=1))
        informed = self._role == MERLIN
        base = self._facade() if self._is_evil or informed else mine
        often *= 1.0 if self.view.score[1] == 2 else style.merlin_calm
        if rng.random() >= often * (1.0 if informed else style.bluff):
            return base
        knowledge = mine
        if not informed:
            knowledge = np.zeros(len(base))
            knowledge[rng.choices(range(len(base)), base.tolist())[0]] = 1.0
        return np.asarray(style.merlin_share * knowledge + (1 - style.merlin_share) * base)

    def _chances(self, opinion: Array, size: int) -> tuple[list[tuple[int, ...]], Array]:
        """All teams of `size` and their chances to be safe, rounded so that ties are ties."""
        space = self._believed().space
        teams = space.teams(size)[0]
        return teams, np.round(space.safe(size, self._needed()) @ opinion, 9)

    def _propose(self, rng: random.Random) -> Decision:
        size = self.view.team_sizes[self.view.quest - 1]
        teams, chances = self._chances(self._opinion(self.style.merlin_proposes, rng), size)
        mine = [i for i, team in enumerate(teams) if self._me in team]
        fellows, needed = self._fellows(), self._needed()
        if fellows:
            evil = {i: len(fellows.intersection(teams[i])) for i in mine}
            most = min(needed, max(evil.values()))
            mine = [i for i in mine if evil[i] >= most]
        best = max(chances[i] for i in mine)
        chosen = teams[rng.choice([i for i in mine if chances[i] == best])]
        thought = f"Chance {best:.2f} to be safe in the eyes I act on."
        return Decision(tuple(map(str, chosen)), thought=thought)

    def _approves(self, rng: random.Random) -> bool:
        view, style = self.view, self.style
        if view.attempt == MAX_REJECTIONS:
            return True
        team = view.team
        teams, chances = self._chances(self._opinion(style.merlin_votes, rng), len(team))
        best = max(chance for t, chance in zip(teams, chances, strict=True) if self._me in t)
        ratio = chances[teams.index(team)] / max(best, 1e-9)
        ask = style.approve_from[view.attempt - 1]
        if self._is_evil and 2 in view.score:
            dirty = len(self._fellows().intersection(team)) >= self._needed()
            ask += -style.lenience if dirty else style.strictness
        return rng.random() < 1 / (1 + math.exp(min((ask - ratio) / style.approve_width, 50.0)))

    def _fails(self, rng: random.Random) -> bool:
        if not self._is_evil:
            return False
        view, needed = self.view, self._needed()
        decisive = 2 in view.score
        if self._role == OBERON:
            return decisive or rng.random() < self.style.lone_fail
        members = sorted(self._fellows().intersection(view.team))
        if len(members) < needed and OBERON not in view.deck:
            return False
        if self._me not in members[:needed]:
            return False
        if decisive or needed > 1:
            return True
        return rng.random() < (self.style.first_fail if view.quest == 1 else self.style.later_fail)

    def _speak(self, rng: random.Random) -> str:
        space, style = self._believed().space, self.style
        suspicion = np.round(self._opinion(style.merlin_speaks, rng) @ space.evil, 9)
        prior = space.evil_count / (space.seats - 1)
        others = [s for s in range(space.seats) if s != self._me]
        rng.shuffle(others)
        others.sort(key=lambda s: -suspicion[s])
        suspects = [s for s in others if suspicion[s] >= style.suspect_from * prior][: style.most_named]
        trusts = [s for s in reversed(others) if suspicion[s] <= style.trust_to * prior][: style.most_named]
        parts = []
        if trusts:
            parts.append(f"I trust {_listed(trusts)}.")
        if suspects:
            parts.append(f"I suspect {_listed(suspects)}.")
        examined = [e.target for e in self.view.examinations if e.seat == self._me]
        parts += [f"I examined {target}: {self._shown(target)}." for target in examined]
        return " ".join(parts) or "I am good, and have no read yet."

    def _shown(self, target: int) -> str:
        """What this seat says that the Lady of the Lake showed: the truth, or evil's story."""
        (team,) = [e.team for e in self.view.examinations if e.seat == self._me and e.target == target]
        assert team is not None
        if not self._is_evil or team == EVIL:
            return "good" if self._is_evil else team
        # the same story each time it is told
        return EVIL if random.Random(derive_seed(self.seat.seed, "lady", target)).random() < 0.6 else team

    def _examine(self, rng: random.Random) -> int:
        options = [s for s in range(self.view.seats) if s not in self.view.lady_held]
        suspicion = self._opinion(self.style.merlin_speaks, rng) @ self._believed().space.evil
        if self._is_evil:
            wanted = {s: float(suspicion[s]) + (1.0 if s in self._fellows() else 0.0) for s in options}
        else:
            wanted = {s: abs(float(suspicion[s]) - 0.5) for s in options}
        best = min(round(value, 9) for value in wanted.values())
        return rng.choice([s for s in options if round(wanted[s], 9) == best])

    def _merlin(self, rng: random.Random) -> int:
        """The seat most likely to be merlin, given all that this seat knows."""
        space = self._believed().space
        chances = np.bincount(space.merlin.ravel(), self.posterior().ravel(), space.seats + 1)[: space.seats]
        chances = np.round(chances, 9)
        good = [s for s in range(space.seats) if s not in self.view.evil]
        best = max(chances[s] for s in good)
        return rng.choice([s for s in good if chances[s] == best])


def _cut(text: str, turn: Turn) -> str:
    return text[: turn.space.max_chars] if isinstance(turn.space, Text) else text


def _listed(seats: list[int]) -> str:
    return " and ".join(map(str, sorted(seats)))
