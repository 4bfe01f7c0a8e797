"""Who plays whom, where they sit and on which deal: a plan made before the first match.

A *deal* is a seed of a game's state. Matches of one deal have the same cards, roles and chance, so that the
players of a block are measured on the same luck, as in duplicate bridge. Three ways to seat:

- `seats`: two players at a two-seat game; they meet twice on a deal, each once at each seat;
- `sides`: two players hold whole sides of a game with two sides. Which seats that are is known only after
  the deal, so the plan names sides, and `MatchPlan.seated` turns them into seats;
- `mixed`: players sit together in one match and rotate. Within a block of as many matches as there are
  players, on one deal, every player sits at every seat exactly once, and so holds every dealt role equally
  often. The rows come from one cyclic design (see `rotation`), for any number of players and seats.

A plan depends on its arguments alone. Swiss rounds need results and are in `arena.swiss`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import gcd
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from arena.errors import ScheduleError
from games.rng import Chance, check_seed, derive_seed

Counts = NDArray[np.int64]
Mode = Literal["auto", "seats", "sides", "mixed"]
MODES = ("auto", "seats", "sides", "mixed")
FORMATS = ("round-robin", "swiss", "gauntlet")
ORDERS_TRIED = 24
"""Orders of the players from which a block of a mixed plan takes the one that evens out who meets whom."""


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """One match to play. Either `seating` names the player of each seat, or `sides` the player of each side."""

    index: int
    """From 0 within the game's plan."""
    game: str
    seed: int
    """Of the deal: the seed of the game's state."""
    deal: int
    """Number of the deal; matches with the same number share the seed."""
    round: int
    seating: tuple[str, ...] | None = None
    sides: tuple[tuple[str, str], ...] | None = None
    """(side, player) pairs."""

    def seated(self, teams: Sequence[str]) -> tuple[str, ...]:
        """Return the player of each seat, given each seat's team after the deal (`State.teams()`).

        Raises `ScheduleError` where the deal has other sides or another number of seats than the plan.
        """
        if self.seating is not None:
            if len(teams) != len(self.seating):
                raise ScheduleError(
                    f"schedule: planned for {len(self.seating)} seats, dealt were {len(teams)}"
                )
            return self.seating
        holds = dict(self.sides or ())
        if missing := sorted(set(teams) - holds.keys()):
            raise ScheduleError(
                f"schedule: got side {missing[0]!r} in the deal, planned are {', '.join(holds)}"
            )
        return tuple(holds[team] for team in teams)

    @property
    def players(self) -> tuple[str, ...]:
        """The players in the match, each once, in the order in which they first appear."""
        names = self.seating if self.seating is not None else [player for _, player in self.sides or ()]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Table:
    """What a schedule must know of a game, checked; see `table`."""

    game: str
    seats: int
    team_names: tuple[str, ...]
    mode: Literal["seats", "sides", "mixed"]
    seed: int

    def deal_seed(self, deal: int) -> int:
        """Return the seed of a deal."""
        return derive_seed(self.seed, "deal", self.game, deal)

    def chance(self, *path: str | int) -> Chance:
        """Return a source for the choices of the plan, apart from every deal's."""
        return Chance(derive_seed(self.seed, "plan", self.game, *path))

    def encounter(self, pair: tuple[str, str], *, index: int, deal: int, round: int) -> list[MatchPlan]:
        """Return the two mirrored matches of a pair on one deal."""
        seed = self.deal_seed(deal)
        plans = []
        for turn, (one, two) in enumerate((pair, pair[::-1])):
            seating: tuple[str, ...] | None = None
            sides: tuple[tuple[str, str], ...] | None = None
            if self.mode == "sides":
                sides = tuple(zip(self.team_names, (one, two), strict=True))
            else:
                seating = tuple(islice(cycle((one, two)), self.seats))
            plans.append(MatchPlan(index + turn, self.game, seed, deal, round, seating, sides))
        return plans


def table(
    players: Sequence[str],
    *,
    game: str,
    seats: int,
    team_names: Sequence[str],
    matches: int,
    seed: int,
    mode: Mode = "auto",
) -> Table:
    """Check what a schedule is asked for; `auto` takes `seats`, else `sides`, else `mixed`, whichever fits.

    Raises `ScheduleError` for no or duplicate players, an unknown or unfitting mode, fewer than one seat or
    a negative number of matches, and `BadSeed`.
    """
    if not players:
        raise ScheduleError(f"schedule: got no player for {game}, at least one is needed")
    if twice := [name[:80] for name, count in Counter(players).items() if count > 1]:
        raise ScheduleError(f"players: got {twice[0]!r} twice, every name must be its own (write NAME=SPEC)")
    if isinstance(matches, bool) or not isinstance(matches, int) or matches < 0:
        raise ScheduleError(f"matches: got {matches!r}, allowed are whole numbers from 0")
    if isinstance(seats, bool) or not isinstance(seats, int) or seats < 1:
        raise ScheduleError(f"seats: got {seats!r}, allowed are whole numbers from 1")
    fits = {"seats": seats == 2, "sides": len(team_names) == 2 and seats >= 2, "mixed": True}
    if mode not in MODES:
        raise ScheduleError(f"seating: got {mode!r}, allowed are {', '.join(MODES)}")
    if mode == "auto":
        mode = "seats" if fits["seats"] else "sides" if fits["sides"] else "mixed"
    if not fits[mode]:
        allowed = ", ".join(name for name, fit in fits.items() if fit)
        raise ScheduleError(
            f"seating: got {mode!r}, {game} with {seats} seats and {len(team_names)} sides allows {allowed}"
        )
    return Table(game, seats, tuple(team_names), mode, check_seed(seed))


def plan(
    players: Sequence[str],
    *,
    game: str,
    seats: int,
    team_names: Sequence[str],
    matches: int,
    seed: int,
    format: Literal["round-robin", "gauntlet"] = "round-robin",
    mode: Mode = "auto",
) -> tuple[MatchPlan, ...]:
    """Return the plan of a round-robin or a gauntlet.

    Args:
        players: distinct names; a gauntlet's first player meets each of the others.
        game: name of the game, carried into the plan.
        seats: seats of a match.
        team_names: the sides of the game, as `Game.team_names`.
        matches: how many, all players together. They are spread as evenly as they can be: how often pairs
            meet differs by one encounter (two matches) at most. `imbalance` says what remains uneven.
        seed: 0 … 2**63 - 1, of the deals and of every choice.
        format: `round-robin` or `gauntlet`.
        mode: see the module; `mixed` seats all players together in a round-robin, a pair in a gauntlet.

    One player alone plays against itself, every match on a deal of its own. Raises what `table` does.
    """
    at = table(players, game=game, seats=seats, team_names=team_names, matches=matches, seed=seed, mode=mode)
    if format not in ("round-robin", "gauntlet"):
        raise ScheduleError(f"format: got {format!r}, planned ahead are round-robin, gauntlet")
    if len(players) == 1:
        me = players[0]
        return tuple(at.encounter((me, me), index=i, deal=i, round=i)[0] for i in range(matches))
    if at.mode == "mixed" and format == "round-robin":
        return tuple(islice(_mixed(players, at), matches))
    if format == "gauntlet":
        order = at.chance("order").order(len(players) - 1)
        rounds = [[(players[0], players[1 + i])] for i in order]
    else:
        order = at.chance("order").order(len(players))
        rounds = [
            [(players[order[a]], players[order[b]]) for a, b in line] for line in rounds_of(len(players))
        ]
    return tuple(islice(_encounters(rounds, at), matches))


def _encounters(rounds: Sequence[Sequence[tuple[str, str]]], at: Table) -> Iterator[MatchPlan]:
    numbered = enumerate((number, pair) for number, pairs in enumerate(cycle(rounds)) for pair in pairs)
    for deal, (number, pair) in numbered:
        yield from at.encounter(pair, index=2 * deal, deal=deal, round=number)


def rounds_of(count: int) -> list[list[tuple[int, int]]]:
    """Return rounds in which every pair of `count` players meets once.

    Cut off anywhere, the encounters of any two players differ by one at most. For an even number it is the
    circle method; for an odd one, where a round with byes would not do, the Hamiltonian cycles of Walecki's
    decomposition (E. Lucas, "Récréations mathématiques" 2, 1883), each walked by every second edge.
    """
    if count % 2 == 0:
        last = count - 1
        return [
            [(last, r), *(((r + i) % last, (r - i) % last) for i in range(1, count // 2))]
            for r in range(last)
        ]
    ring = count - 1
    rounds = []
    for start in range(ring // 2):
        walk = [ring, *((start + (i + 1) // 2 * (1 if i % 2 else -1)) % ring for i in range(ring))]
        edges = [(walk[i], walk[(i + 1) % count]) for i in range(count)]
        rounds.append([*edges[: count - 1 : 2], edges[-1], *edges[1 : count - 1 : 2]])
    return rounds


def rotation(players: int, *, seats: int) -> tuple[list[int], list[int]]:
    """Return (offsets by seat, order of rows) of a cyclic design; row r seats player (r + offset) mod players.

    Over all rows every player sits at every seat once. Offsets are distinct while players suffice, else each
    occurs as often as the others or once more. Seats in zigzag order (0, last, 1, last-1, …) make the
    differences between neighbours distinct, so that nobody always speaks after the same player (E. J.
    Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949).
    The order of rows tiles the players, so that cut off anywhere the seats of any two differ by one at most.
    """
    whole, rest = divmod(seats, players)
    offsets = zigzag(players) * whole + zigzag(rest)
    step = rest or players
    common = gcd(players, step)
    rows = [(turn + i * step) % players for turn in range(common) for i in range(players // common)]
    return offsets, rows


def zigzag(count: int) -> list[int]:
    """Return 0, count-1, 1, count-2, …: the first row of Williams' square."""
    return [i // 2 if i % 2 == 0 else count - 1 - i // 2 for i in range(count)]


def _mixed(players: Sequence[str], at: Table) -> Iterator[MatchPlan]:
    count = len(players)
    offsets, rows = rotation(count, seats=at.seats)
    met = np.zeros((count, count), dtype=np.int64)
    gaps = Counter((a - b) % count for i, a in enumerate(offsets) for b in offsets[:i])
    tries = 1 if count <= at.seats else ORDERS_TRIED
    block = 0
    while True:
        chance = at.chance("block", block)
        order, met = _order(chance, gaps, met, tries)
        places = offsets
        if count < at.seats:
            places = [offsets[i] for i in chance.order(at.seats)]
        elif block % 2:
            places = offsets[::-1]
        seed = at.deal_seed(block)
        for turn, row in enumerate(rows):
            seating = tuple(players[order[(row + place) % count]] for place in places)
            yield MatchPlan(block * count + turn, at.game, seed, block, block, seating)
        block += 1


def _order(chance: Chance, gaps: Counter[int], met: Counts, tries: int) -> tuple[list[int], Counts]:
    """Return the order of players whose block evens out the meetings best, and the meetings after it."""
    count = len(met)
    positions = np.arange(count)
    by_gap = np.array([gaps[d] + gaps[-d % count] for d in range(count)], dtype=np.int64)
    block = by_gap[(positions[:, None] - positions[None, :]) % count]
    np.fill_diagonal(block, 0)
    found: list[tuple[list[int], Counts]] = []
    for _ in range(tries):
        order = chance.order(count)
        after = met.copy()
        after[np.ix_(order, order)] += block
        found.append((order, after))
    return min(found, key=lambda pair: int((pair[1] ** 2).sum()))


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How evenly a plan treats its players; every spread is the most minus the fewest."""

    matches: dict[str, int]
    """Matches by player."""
    places: dict[str, dict[str, int]]
    """How often each player has each place (`seat 0`, …, or `side good`, …)."""
    pairs: dict[tuple[str, str], int]
    """Matches in which both players sit, by sorted pair."""
    spread: dict[str, int]
    """Of `matches`, of `pairs`, and of each place, over the players."""
    cut_deals: tuple[int, ...]
    """Deals that were not played in every rotation, so that their roles are not shared out evenly."""

    @property
    def balanced(self) -> bool:
        """Whether nothing is uneven except, it may be, who meets whom."""
        return not self.cut_deals and not any(v for name, v in self.spread.items() if name != "pairs")

    @property
    def lines(self) -> tuple[str, ...]:
        """What is uneven, in words; empty when nothing is."""
        found = []
        if self.spread["matches"]:
            found.append(f"matches per player: {_range(self.matches.values())}")
        found += [
            f"{place}: {_range(held.get(place, 0) for held in self.places.values())} per player"
            for place, spread in self.spread.items()
            if spread and place not in ("matches", "pairs")
        ]
        if self.spread["pairs"]:
            found.append(f"matches per pair: {_range(self.pairs.values())}")
        if self.cut_deals:
            found.append(
                f"deals without their full rotation, so with roles unevenly held: {len(self.cut_deals)}"
            )
        return tuple(found)


def _range(values: Iterable[int]) -> str:
    numbers = sorted(values)
    return f"{numbers[0]} to {numbers[-1]}"


def imbalance(plans: Sequence[MatchPlan], *, players: Sequence[str]) -> Imbalance:
    """Return how evenly `plans` (of one game) treat `players`, all of them, also those without a match."""
    matches = dict.fromkeys(players, 0)
    places: dict[str, Counter[str]] = {name: Counter() for name in players}
    names = sorted(players)
    pairs = {(a, b): 0 for i, a in enumerate(names) for b in names[i + 1 :]}
    deals: dict[int, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    order: dict[str, None] = {}
    for match in plans:
        held = (
            [(f"seat {i}", player) for i, player in enumerate(match.seating)]
            if match.seating is not None
            else [(f"side {side}", player) for side, player in match.sides or ()]
        )
        for place, player in held:
            order[place] = None
            places[player][place] += 1
            deals[match.deal][place][player] += 1
        for player in match.players:
            matches[player] += 1
        present = sorted(match.players)
        for i, a in enumerate(present):
            for b in present[i + 1 :]:
                pairs[a, b] += 1
    cut = [
        deal
        for deal, found in deals.items()
        if len({tuple(sorted(held.items())) for held in found.values()}) > 1
    ]
    spread = {"matches": _spread(list(matches.values())), "pairs": _spread(list(pairs.values()))}
    spread |= {place: _spread([places[player][place] for player in players]) for place in order}
    return Imbalance(matches, {p: dict(c) for p, c in places.items()}, pairs, spread, tuple(sorted(cut)))


def _spread(values: Sequence[int]) -> int:
    return max(values) - min(values) if values else 0
