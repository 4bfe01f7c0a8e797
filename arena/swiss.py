"""The Swiss system: each round pairs players of like score who have not met.

A round is found as a perfect matching of least cost (J. Edmonds, "Paths, trees, and flowers", 1965), in this
order of priority: byes are shared out evenly; pairs that met least meet; a bye goes to the last in the
ranking; scores within a pair are close; ranks are close. A pair therefore meets again only in a round that
has no pairing without it. The ranking is by points, then Buchholz (the points of one's opponents), then a
seeded draw.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

from arena.errors import ScheduleError
from arena.schedule import MatchPlan, Mode, Table, table
from games.rng import Chance

Points = Mapping[str, float]
"""Points by player in one match, each 0 … 1 (a win is 1, a draw ½)."""

BYE_POINTS = 2.0
"""A bye counts as an encounter won; it is for pairing alone and reaches no rating."""


class Swiss:
    """A Swiss tournament of `matches` matches in all; call `next_round` until it returns nothing.

    Args: as for `arena.schedule.plan`; in mode `mixed` a pair shares the seats of a match between them.

    An object that is made anew and given the same results plans the same rounds, so a tournament resumes.
    Raises what `arena.schedule.table` does.
    """

    def __init__(
        self,
        players: Sequence[str],
        *,
        game: str,
        seats: int,
        team_names: Sequence[str],
        matches: int,
        seed: int,
        mode: Mode = "auto",
    ) -> None:
        self.players = tuple(players)
        self.matches = matches
        self.table: Table = table(
            players, game=game, seats=seats, team_names=team_names, matches=matches, seed=seed, mode=mode
        )
        draw: Chance = self.table.chance("draw")
        self._draw = {self.players[i]: rank for rank, i in enumerate(draw.order(len(players)))}
        self._planned: list[MatchPlan] = []
        self._met: dict[frozenset[str], int] = {}
        self._byes = dict.fromkeys(self.players, 0)
        self._rounds = 0

    @property
    def planned(self) -> tuple[MatchPlan, ...]:
        """All matches planned so far."""
        return tuple(self._planned)

    @property
    def byes(self) -> dict[str, int]:
        """Byes so far by player."""
        return dict(self._byes)

    def next_round(self, results: Mapping[int, Points | None]) -> tuple[MatchPlan, ...]:
        """Plan the next round from the results of all matches planned so far, by `MatchPlan.index`.

        None marks a match that failed; it counts half a point to each. Results of later matches are not
        looked at. Returns nothing when all matches are planned. Raises `ScheduleError` where a result is
        missing or names other players.
        """
        if len(self._planned) >= self.matches:
            return ()
        if len(self.players) == 1:
            me, index = self.players[0], len(self._planned)
            self._planned += self.table.encounter((me, me), index=index, deal=index, round=index)[:1]
            return (self._planned[-1],)
        pairs = self._pair(*self.ranking(results))
        start, deal = len(self._planned), len(self._planned) // 2
        plans = (
            plan
            for i, pair in enumerate(pairs)
            for plan in self.table.encounter(pair, index=start + 2 * i, deal=deal + i, round=self._rounds)
        )
        found = tuple(islice(plans, self.matches - start))
        self._planned += found
        self._rounds += 1
        return found

    def ranking(self, results: Mapping[int, Points | None]) -> tuple[list[str], dict[str, float]]:
        """Return the players from first to last, and their points, byes included. Raises as `next_round`."""
        points = {name: BYE_POINTS * self._byes[name] for name in self.players}
        for plan in self._planned:
            if plan.index not in results:
                raise ScheduleError(
                    f"swiss: round {self._rounds + 1} needs the result of match {plan.index}, there is none"
                )
            given = results[plan.index]
            gained = dict.fromkeys(plan.players, 0.5) if given is None else given
            if set(gained) != set(plan.players) or not all(0 <= value <= 1 for value in gained.values()):
                raise ScheduleError(
                    f"swiss: match {plan.index} needs points from 0 to 1 for {', '.join(plan.players)}, "
                    f"got {dict(gained)!r}"
                )
            for name, value in gained.items():
                points[name] += value
        buchholz = dict.fromkeys(self.players, 0.0)
        for plan in self._planned:
            for name in plan.players:
                buchholz[name] += sum(points[other] for other in plan.players if other != name)
        ranked = sorted(self.players, key=lambda name: (-points[name], -buchholz[name], self._draw[name]))
        return ranked, points

    def _pair(self, ranked: list[str], points: Mapping[str, float]) -> list[tuple[str, str]]:
        # Imported here: it is needed by no other command, and start-up is to be quick.
        from networkx import Graph, max_weight_matching  # type: ignore[import-untyped]

        count, rounds = len(ranked), self._rounds + 1
        # Each priority outweighs all that the ones before it can sum to over a round.
        by_points = count**3
        by_last = by_points * count * (16 * rounds**2 + 1)
        by_meeting = by_last * (count + 1)
        by_bye = by_meeting * count * (rounds + 1)
        graph = Graph()
        for i, one in enumerate(ranked):
            for j in range(i + 1, count):
                two = ranked[j]
                gap = round(2 * abs(points[one] - points[two]))
                cost = (j - i) ** 2 + gap**2 * by_points
                cost += self._met.get(frozenset((one, two)), 0) * by_meeting
                graph.add_edge(i, j, weight=-cost)
            if count % 2:
                graph.add_edge(i, count, weight=-self._byes[one] * by_bye - (count - i) * by_last)
        matched = sorted(tuple(sorted(edge)) for edge in max_weight_matching(graph, maxcardinality=True))
        pairs = []
        for i, j in matched:
            if j == count:
                self._byes[ranked[i]] += 1
                continue
            pair = (ranked[i], ranked[j])
            self._met[frozenset(pair)] = self._met.get(frozenset(pair), 0) + 1
            pairs.append(pair)
        return pairs
