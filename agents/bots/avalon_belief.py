"""What the public events of an Avalon match say about the roles: an exact posterior over assignments.

A hypothesis is an evil set with the seats of merlin, mordred and oberon where they are in play; the other
roles change nothing that the likelihoods speak of (percival is taken for an uninformed good seat). All
deals have the same prior. Weights are an array of shape (sets, places): one row for each evil set, one
column for each way to place the three among it.

Hard facts (more fails than evil on a team) give weight exactly 0. Soft evidence multiplies: how likely a
seat of each kind (uninformed good, merlin, informed evil, oberon) is to propose, vote, fail and say what it
did, by tables fitted to self-play (`benchmarks/avalon_fit.py`) and mixed with a floor, so that no behaviour
excludes anything.

A `Belief` is a pure function of public events, so the seats of one process share it: a belief remembers
(weakly) those that followed it.
"""

import json
from collections import deque
from collections.abc import Iterable
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import combinations, permutations
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from agents.bots.avalon_speech import Claims, parse_claims
from agents.bots.avalon_style import Style
from games.avalon.rules import APPROVE, EVIL, MAX_REJECTIONS, MERLIN, MORDRED, OBERON, SIDES
from games.base import Event

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

PLAIN, SEER, INFORMED, LONE = 0, 1, 2, 3
"""Kinds of seat: uninformed good, merlin, evil that knows its fellows, oberon."""

RATIO_EDGES = np.array([0.3, 0.6, 0.85, 0.999])
"""Bins of a team's quality: its chance to be safe over the best team's, as an uninformed good seat sees it."""
APPROVAL_EDGES = np.array([0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97])
"""Bins of how likely an uninformed good seat would approve."""
SUSPICION_EDGES = np.array([0.5, 0.65, 0.85, 1.0, 1.2, 1.35, 1.6])
"""Bins of the suspicion of a target in the eyes of the speaker if good, in units of the prior."""
FLOOR = 0.06
"""Share of a uniform distribution mixed into each table."""
WILD_FLOOR = 0.1
"""As much again for evil's votes and proposals: who plays without sense is rather evil than merlin."""
LEAST_WEIGHT = 1e-200
"""No hypothesis that is possible falls below this weight."""


class Tables:
    """Log-likelihood tables, made of counts by Laplace's rule and mixed with the floor."""

    SHAPES: ClassVar[dict[str, tuple[int, ...]]] = {
        # the last axis is what is observed, the others are what it depends on
        "vote_plain": (8, 2),  # approval, [reject, approve]
        "vote_seer": (2, 8, 2),  # sees evil on the team
        "vote_informed": (3, 8, 2),  # `interest`
        "vote_lone": (3, 8, 2),
        "propose_quality": (4, 5),  # kind, quality
        "propose_shown": (2, 5, 2),  # [plain, seer], quality, merlin sees evil on the team
        "fails": (5, 4, 5),  # situation, evil on the team, fails
        "suspect_plain": (8, 2),  # suspicion of the target, said
        "suspect_seer": (2, 8, 2),  # merlin sees the target as evil
        "trust_plain": (8, 2),
        "trust_seer": (2, 8, 2),
        "lady": (3, 2, 2),  # [good, informed, lone], target is evil, said to be evil
    }

    def __init__(self, counts: dict[str, Any], style: Style | None = None) -> None:
        self.style = Style() if style is None else style
        for name, shape in self.SHAPES.items():
            table = np.asarray(counts[name], dtype=float)
            if table.shape != shape:
                raise ValueError(f"table {name}: got shape {table.shape}, needed is {shape}")
            share = (table + 0.5) / (table + 0.5).sum(axis=-1, keepdims=True)
            share = _mixed(share, FLOOR)
            if name in ("vote_informed", "vote_lone"):
                share = _mixed(share, WILD_FLOOR)
            elif name == "propose_quality":
                share[[INFORMED, LONE]] = _mixed(share[[INFORMED, LONE]], WILD_FLOOR)
            setattr(self, name, np.log(share))

    vote_plain: Array
    vote_seer: Array
    vote_informed: Array
    vote_lone: Array
    propose_quality: Array
    propose_shown: Array
    fails: Array
    suspect_plain: Array
    suspect_seer: Array
    trust_plain: Array
    trust_seer: Array
    lady: Array

    @classmethod
    def blank(cls) -> dict[str, Array]:
        """Return empty counts."""
        return {name: np.zeros(shape) for name, shape in cls.SHAPES.items()}


def _mixed(share: Array, floor: float) -> Array:
    mixed: Array = (1 - floor) * share + floor / share.shape[-1]
    return mixed


@lru_cache(maxsize=1)
def fitted_tables() -> Tables:
    """Return the tables that ship with the bot."""
    text = files("agents.bots").joinpath("avalon_parameters.json").read_text(encoding="utf-8")
    return Tables(json.loads(text)["counts"])


class Space:
    """The hypotheses of one set-up, as arrays.

    Args:
        deck: the roles in play, one for each seat.
    """

    def __init__(self, deck: tuple[str, ...]) -> None:
        n = self.seats = len(deck)
        k = self.evil_count = sum(SIDES[role] == EVIL for role in deck)
        self.deck = deck
        self.sets = list(combinations(range(n), k))
        self.row = {chosen: i for i, chosen in enumerate(self.sets)}
        self.evil: Array = np.zeros((len(self.sets), n))
        for i, chosen in enumerate(self.sets):
            self.evil[i, list(chosen)] = 1.0
        self.good: Array = 1.0 - self.evil
        evil_seats = np.array(self.sets)
        good_seats = np.array([[s for s in range(n) if s not in chosen] for chosen in self.sets])
        hidden = [role for role in (MORDRED, OBERON) if role in deck]
        places = [
            (merlin, dict(zip(hidden, way, strict=True)))
            for merlin in (range(n - k) if MERLIN in deck else (None,))
            for way in permutations(range(k), len(hidden))
        ]
        shape = (len(self.sets), len(places))
        # n stands for "not in play": arrays indexed by these have n + 1 entries, the last one neutral
        self.merlin: Ints = np.full(shape, n)
        self.mordred: Ints = np.full(shape, n)
        self.oberon: Ints = np.full(shape, n)
        for column, (merlin, at) in enumerate(places):
            if merlin is not None:
                self.merlin[:, column] = good_seats[:, merlin]
            if MORDRED in at:
                self.mordred[:, column] = evil_seats[:, at[MORDRED]]
            if OBERON in at:
                self.oberon[:, column] = evil_seats[:, at[OBERON]]
        rows = np.arange(shape[0])[:, None] * (n + 1)
        self.merlin_cells: Ints = (rows + self.merlin).ravel()
        self.has_oberon = OBERON in deck
        self.prior = k / n
        self.uniform: Array = np.full(shape, 1.0 / (shape[0] * shape[1]))
        self._teams: dict[int, tuple[list[tuple[int, ...]], dict[tuple[int, ...], int], Array]] = {}
        self._safe: dict[tuple[int, int], Array] = {}

    def teams(self, size: int) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], int], Array]:
        """Return all teams of `size`, their places in that list, and a (teams, seats) array of members."""
        if size not in self._teams:
            teams = list(combinations(range(self.seats), size))
            members = np.zeros((len(teams), self.seats))
            for i, team in enumerate(teams):
                members[i, list(team)] = 1.0
            self._teams[size] = (teams, {team: i for i, team in enumerate(teams)}, members)
        return self._teams[size]

    def safe(self, size: int, needed: int) -> Array:
        """Return a (teams, sets) array: 1 where fewer than `needed` evil seats are on the team."""
        if (size, needed) not in self._safe:
            members = self.teams(size)[2]
            self._safe[size, needed] = (members @ self.evil.T < needed).astype(float)
        return self._safe[size, needed]

    def kind(self, seat: int) -> NDArray[np.int8]:
        """Return the kind of `seat` under each hypothesis."""
        kinds = np.where(self.evil[:, seat, None] > 0, INFORMED, PLAIN).astype(np.int8)
        kinds = np.broadcast_to(kinds, self.merlin.shape).copy()
        kinds[self.merlin == seat] = SEER
        kinds[self.oberon == seat] = LONE
        return kinds


@lru_cache(maxsize=32)
def space_for(deck: tuple[str, ...]) -> Space:
    """Return the hypotheses for a deck (made once in a process)."""
    return Space(deck)


class Proposed(NamedTuple):
    """A discussion and the proposal that ended it; `said` holds each speaker's new claims."""

    leader: int
    team: tuple[int, ...]
    needed: int
    said: tuple[tuple[int, Claims], ...] = ()


class Voted(NamedTuple):
    """The votes on a proposal, with the quests that good has won and lost before."""

    team: tuple[int, ...]
    needed: int
    votes: tuple[str, ...]
    attempt: int
    won: int
    lost: int

    @property
    def critical(self) -> bool:
        """Whether a side has two quests."""
        return 2 in (self.won, self.lost)


class Played(NamedTuple):
    """A quest that was played; `situation` as in `quest_situation`."""

    team: tuple[int, ...]
    fails: int
    situation: int


Item = Proposed | Voted | Played


def quest_situation(quest: int, won: int, lost: int, needed: int) -> int:
    """Return what an evil member's card depends on.

    0 the first quest, 1 a later one, 2 good has two quests, 3 evil has two, 4 two fails are needed.
    """
    if needed > 1:
        return 4
    return 2 if won == 2 else 3 if lost == 2 else 0 if quest == 1 else 1


class Reader:
    """Turns public events into items. An opinion counts once, until the speaker changes it."""

    def __init__(self) -> None:
        self._said: dict[int, Claims] = {}
        self._opinions: dict[int, dict[int, bool]] = {}
        self._shown: set[tuple[int, int]] = set()
        self._seats = 0
        self._fails_needed: tuple[int, ...] = ()
        self._quest = self._attempt = 0
        self._won = self._lost = 0

    def read(self, event: Event) -> Item | None:
        """Fold one event in; return the item that it completes, if any."""
        data = event.data
        match event.kind:
            case "speech":
                self._hear(data["seat"], data["text"])
            case "round":
                self._quest, self._attempt = data["quest"], data["attempt"]
            case "proposal":
                said, self._said = tuple(self._said.items()), {}
                return Proposed(data["seat"], tuple(data["team"]), self._needed(), said)
            case "votes":
                team, votes = tuple(data["team"]), tuple(data["votes"])
                return Voted(team, self._needed(), votes, self._attempt, self._won, self._lost)
            case "quest":
                situation = quest_situation(self._quest, self._won, self._lost, self._needed())
                self._won += data["success"]
                self._lost += not data["success"]
                return Played(tuple(data["team"]), data["fails"], situation)
            case "start":
                self._seats, self._fails_needed = data["seats"], tuple(data["fails_needed"])
        return None

    def _needed(self) -> int:
        return self._fails_needed[self._quest - 1]

    def _hear(self, speaker: int, text: str) -> None:
        if not text:
            return
        claims = parse_claims(text, speaker, self._seats)
        held = self._opinions.setdefault(speaker, {})
        suspects = tuple(s for s in claims.suspects if held.get(s) is not True)
        trusts = tuple(s for s in claims.trusts if held.get(s) is not False)
        lady = tuple((s, said) for s, said in claims.lady if (speaker, s) not in self._shown)
        held.update(dict.fromkeys(suspects, True) | dict.fromkeys(trusts, False))
        self._shown.update((speaker, s) for s, _ in lady)
        if suspects or trusts or lady:
            before = self._said.get(speaker, Claims())
            self._said[speaker] = Claims(
                before.suspects + suspects, before.trusts + trusts, before.lady + lady
            )


_RECENT: "deque[Belief]" = deque(maxlen=48)
"""Keeps the last beliefs alive until the other seats of their match have come to them; nothing reads it."""


class Belief:
    """The posterior after some public events.

    `weights` has shape (sets, places) and sums to 1; it must not be changed.
    """

    def __init__(self, space: Space, tables: Tables, weights: Array) -> None:
        self.space = space
        self.tables = tables
        self.weights = weights
        self._next: WeakValueDictionary[Item, Belief] = WeakValueDictionary()

    @cached_property
    def by_set(self) -> Array:
        """Probability of each evil set."""
        return np.asarray(self.weights.sum(axis=1))

    @cached_property
    def plain(self) -> Array:
        """Return the (sets, seats) probability of each evil set together with the seat being good, not merlin."""
        space = self.space
        sets, n = space.evil.shape
        cells = np.bincount(space.merlin_cells, self.weights.ravel(), sets * (n + 1))
        merlin = cells.reshape(sets, n + 1)[:, :n]
        return np.asarray(np.maximum(self.by_set[:, None] * space.good - merlin, 0.0))

    @cached_property
    def suspicion(self) -> Array:
        """Public probability that each seat is evil."""
        return np.asarray(self.by_set @ self.space.evil)

    @cached_property
    def suspicion_bins(self) -> Ints:
        """Bins of how much each seat suspects each other if it is good and uninformed: (seats, seats)."""
        space = self.space
        mass = self.plain.T @ space.evil
        alone = np.maximum(self.plain.sum(axis=0), 1e-12)[:, None]
        prior = space.evil_count / (space.seats - 1)
        bins: Ints = np.searchsorted(SUSPICION_EDGES, np.round(mass / alone / prior, 9), side="right")
        return bins

    def after(self, item: Item) -> "Belief":
        """Return the belief after one more item."""
        known = self._next.get(item)
        if known is None:
            likelihood = self.log_likelihood(item)
            weights = self.weights * np.exp(likelihood - likelihood.max())
            # soft evidence excludes nothing, not even by underflow
            weights = np.where(self.weights > 0, np.maximum(weights, LEAST_WEIGHT), 0.0)
            if isinstance(item, Played):
                possible = self.space.evil[:, list(item.team)].sum(axis=1) >= item.fails
                weights *= possible[:, None]
            known = Belief(self.space, self.tables, weights / weights.sum())
            self._next[item] = known
            _RECENT.append(known)
        return known

    def log_likelihood(self, item: Item) -> Array:
        """Return the log-likelihood of an item under each hypothesis, up to a constant; finite."""
        if isinstance(item, Voted):
            return self._of_votes(item)
        if isinstance(item, Proposed):
            return self._of_claims(item.said) + self._of_proposal(item)
        evil = np.minimum(self.space.evil[:, list(item.team)].sum(axis=1).astype(int), 3)
        table: Array = self.tables.fails[item.situation, evil, min(item.fails, 4)]
        return table[:, None]

    def outlook(self, team: tuple[int, ...], needed: int) -> tuple[Array, Array]:
        """Return a team's chance to be safe over the best team's, and the chance, in each seat's eyes.

        In the eyes that the seat has if it is good and uninformed; both are rounded, and of shape (seats,).
        """
        space = self.space
        _, place, members = space.teams(len(team))
        alone = np.maximum(self.plain.sum(axis=0), 1e-12)
        chance = (space.safe(len(team), needed) @ self.plain) / alone
        best = np.where(members > 0, chance, 0.0).max(axis=0)
        own = chance[place[team]]
        return np.round(own / np.maximum(best, 1e-12), 9), np.round(own, 9)

    def quality(self, team: tuple[int, ...], needed: int) -> Ints:
        """Return the bins of the first of `outlook`."""
        return np.searchsorted(RATIO_EDGES, self.outlook(team, needed)[0], side="right")

    def approval(self, item: Voted) -> Ints:
        """Return the bins of how likely each seat would approve if it is good and uninformed."""
        ratio, chance = self.outlook(item.team, item.needed)
        approval = self.tables.style.approval(ratio, chance, item.attempt, item.lost == 2)
        return np.searchsorted(APPROVAL_EDGES, np.round(approval, 9), side="right")

    def on_team(self, team: Iterable[int]) -> Array:
        """Return a (seats + 1,) array with 1 for each member."""
        on = np.zeros(self.space.seats + 1)
        on[list(team)] = 1.0
        return on

    def _of_votes(self, item: Voted) -> Array:
        space, tables = self.space, self.tables
        if item.attempt == MAX_REJECTIONS:
            return np.zeros((1, 1))
        n = space.seats
        approval, on = self.approval(item), self.on_team(item.team)
        vote = np.array([int(v == APPROVE) for v in item.votes])
        plain = tables.vote_plain[approval, vote]
        informed = tables.vote_informed[:, approval, vote].T
        seer = np.zeros((n + 1, 2))
        seer[:n] = tables.vote_seer[:, approval, vote].T - plain[:, None]
        evil = space.evil @ on[:n]
        total = (space.good @ plain)[:, None]
        sums = space.evil @ informed
        known = evil[:, None] - on[space.oberon]
        interests = interest(known, item.needed, item.critical)
        result = total + np.take_along_axis(sums, interests, axis=1)
        if space.has_oberon:
            alone = interest(on, item.needed, item.critical)
            lone = np.zeros(n + 1)
            lone[:n] = tables.vote_lone[alone[:n], approval, vote]
            padded = np.vstack([informed, np.zeros(3)])
            result = result - padded[space.oberon, interests] + lone[space.oberon]
        sees = (evil[:, None] - on[space.mordred] > 0).astype(int)
        total_log: Array = result + seer[space.merlin, sees]
        return total_log

    def _of_proposal(self, item: Proposed) -> Array:
        space, tables = self.space, self.tables
        leader = item.leader
        quality = int(self.quality(item.team, item.needed)[leader])
        on = self.on_team(item.team)
        base = tables.propose_quality[:, quality]
        sees = ((space.evil @ on[:-1])[:, None] - on[space.mordred] > 0).astype(int)
        shown = tables.propose_shown[:, quality]
        seer = base[SEER] + (shown[1] - shown[0])[sees]
        result = np.where(space.evil[:, leader, None] > 0, base[INFORMED], base[PLAIN])
        result = np.where(space.merlin == leader, seer, result)
        likelihood: Array = np.where(space.oberon == leader, base[LONE], result)
        return likelihood

    def _of_claims(self, said: tuple[tuple[int, Claims], ...]) -> Array:
        # Evil speaks as good would in its place, so opinions tell merlin from the others and no more.
        space, tables = self.space, self.tables
        if not said:
            return np.zeros((1, 1))
        n = space.seats
        total = np.zeros(len(space.sets))
        seer = np.zeros((n + 1, len(space.sets)))
        unseen = np.zeros((n + 1, n + 1))
        lone = np.zeros((n + 1, len(space.sets)))
        for speaker, claims in said:
            bins = self.suspicion_bins[speaker]
            for listed, plain, knowing in (
                (claims.suspects, tables.suspect_plain, tables.suspect_seer),
                (claims.trusts, tables.trust_plain, tables.trust_seer),
            ):
                for target in listed:
                    other, shown = knowing[:, bins[target], 1] - plain[bins[target], 1]
                    seer[speaker] += other + (shown - other) * space.evil[:, target]
                    unseen[speaker, target] += other - shown
            for target, said_evil in claims.lady:
                column = space.evil[:, target]
                good, informed, alone = (
                    row[0] + (row[1] - row[0]) * column for row in tables.lady[:, :, int(said_evil)]
                )
                total += np.where(space.evil[:, speaker] > 0, informed, good)
                lone[speaker] += alone - informed
        rows = np.arange(len(space.sets))[:, None]
        result: Array = total[:, None] + seer[space.merlin, rows] + unseen[space.merlin, space.mordred]
        if space.has_oberon:
            result = result + lone[space.oberon, rows]
        return result


def interest(known: Array, needed: int, critical: bool) -> Ints:
    """Return evil's interest in a team with `known` evil: 0 none in particular, 1 to stop it, 2 to send it."""
    return np.where(critical, 1 + (known >= needed), 0).astype(np.intp)


@lru_cache(maxsize=32)
def start_belief(deck: tuple[str, ...], tables: Tables | None = None) -> Belief:
    """Return the belief before the first event. `tables` None means the fitted ones."""
    space = space_for(deck)
    return Belief(space, fitted_tables() if tables is None else tables, space.uniform)
