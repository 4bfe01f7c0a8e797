"""Running a tournament: the plan's matches through the pool into the store, whatever happens on the way.

Every planned match has a number, an identity and a place for its record, all fixed by the configuration. A
record appears at its place whole (see `arena.runner`), its row in the store shortly after. So a tournament
that was killed goes on from what it left: matches with a row are done, those with a record alone are taken
in from it, the rest are played. Nothing that is stored depends on the order in which matches end.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.policy.settings import PolicySettings
from agents.policy.spec import is_policy
from arena.errors import StoreError, TournamentError
from arena.lock import hold
from arena.policy_pool import Pools, has_policy
from arena.policy_totals import PolicyTotals
from arena.report import MatchReport, points
from arena.runner import MatchJob
from arena.schedule import MatchPlan, imbalance, plan
from arena.sprt import Sprt
from arena.store import FAILED, FILE_NAME, FINISHED, FOLDER, INTERRUPTED, RUNNING, Store
from arena.swiss import Points, Swiss
from arena.tournament_file import GameSetup, Tournament
from games.errors import ArenaError
from games.registry import load_game
from replays.record import SUFFIX
from replays.writer import PART_SUFFIX

if TYPE_CHECKING:
    from arena.standings import Leaderboard

LOCK_NAME = ".lock"
MODELS = "models"
"""Key of a stored configuration: the models that it began with, by spec. No part of its hash."""
BATCH = 64
"""Matches stored in one transaction."""
BATCH_S = 1.0
"""Seconds after which fewer are stored as well."""

Progress = Callable[[int, int], None]
"""Takes the number of matches done and planned."""

Waiting = tuple[int, int | str | None, MatchReport]
"""A finished match on its way into the store: number, deal, report."""


@dataclass(slots=True)
class Result:
    """How a tournament ended."""

    tournament: str
    planned: int
    played: int
    failed: int
    board: "Leaderboard"
    imbalance: dict[str, list[str]]
    """What the plan treats unevenly, by game; games without anything are left out."""
    sprt: dict[str, dict[str, Any]] | None
    failures: list[dict[str, Any]]
    records: Path
    wall_s: float
    policies: dict[str, PolicyTotals] = field(default_factory=dict)
    """What language models did in this run, by engine."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        board = self.board.as_dict()
        return {
            "tournament": self.tournament,
            "matches": {"planned": self.planned, "played": self.played, "failed": self.failed},
            "standings": board["standings"],
            "side_effect": board["side_effect"],
            "credit": board["credit"],
            "imbalance": self.imbalance,
            "warnings": board["warnings"],
            "sprt": self.sprt,
            "failures": self.failures,
            "records": str(self.records),
            "policies": {engine: totals.as_dict() for engine, totals in self.policies.items()},
            "wall_s": round(self.wall_s, 3),
        }


def run_tournament(
    asked: Tournament,
    *,
    home: Path,
    concurrency: int = 1,
    policy: PolicySettings | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Play a tournament to its end, or on from where it was left, and return the standings.

    Args:
        asked: what to play.
        home: the directory of the store and the records.
        concurrency: processes, for matches of bots.
        policy: how language models are run, where some play.
        resume: go on with the newest unfinished tournament of the same configuration in `home`.
        progress: told after every match.

    Raises `TournamentError` where there is nothing to resume or another process plays it, `StoreError` and
    `RecordWriteFailed` where the disk refuses; `KeyboardInterrupt` passes after what was finished is stored.
    """
    began = time.monotonic()
    settings = policy or PolicySettings()
    models = _models(asked, settings, home)
    if resume and not (home / FILE_NAME).exists() and (home.is_dir() or not home.exists()):
        raise TournamentError(_nothing_to_resume(home))
    pools = Pools(
        max(1, min(concurrency, asked.planned)),
        settings=settings,
        home=home,
        specs=[player.spec for player in asked.players],
    )
    with pools, Store(home) as store:
        if (
            pools.concurrency > 1
        ):  # what rates the matches takes half a second to load: not when all else is done
            threading.Thread(target=import_module, args=("arena.standings",)).start()
        number = _take_up(store, asked, home, models) if resume else None
        if number is None:
            number = store.add_tournament({**asked.to_data(), MODELS: models}, config_hash=asked.hash())
        folder = home / FOLDER / f"t{number}"
        with _locked(folder, number):
            store.set_status(number, status=RUNNING)
            run = _Run(asked, store, home, folder, number, progress)
            run.play(pools)
            result = run.result(time.monotonic() - began)
            result.policies = {engine: PolicyTotals.of(facts) for engine, facts in pools.facts().items()}
            return result


def _models(asked: Tournament, settings: PolicySettings, home: Path) -> dict[str, str]:
    """Return the models that play, by spec; one that there is not is refused before anything is written."""
    specs = [player.spec for player in asked.players]
    if not any(map(is_policy, specs)):
        return {}
    from arena.policy_info import models_of  # knows how models are prompted: not where bots play

    return models_of(specs, settings, home=home)


def _take_up(store: Store, asked: Tournament, home: Path, models: dict[str, str]) -> int:
    row = store.last_unfinished(config_hash=asked.hash())
    if row is not None:
        for spec, model in row.config.get(MODELS, {}).items():
            if models.get(spec, model) != model:
                raise TournamentError(
                    f"--resume: in t{row.id} {spec} was {model}, now it is {models[spec]}: give the model that it "
                    "began with, or leave --resume out to start another"
                )
        return row.id
    known = store.tournaments()
    done = [f"t{one.id}" for one in known if one.hash == asked.hash()]
    others = [f"t{one.id}" for one in known if one.status != FINISHED]
    if done:
        raise TournamentError(
            f"--resume: {done[-1]} in {home} is this configuration, and finished: see `arena ratings`; "
            "leave --resume out to play it again"
        )
    raise TournamentError(_nothing_to_resume(home, others))


def _nothing_to_resume(home: Path, others: Sequence[str] = ()) -> str:
    hint = f"; unfinished with another configuration: {', '.join(others[-5:])}" if others else ""
    return (
        f"--resume: no unfinished tournament of this configuration in {home}{hint}; "
        "leave --resume out to start one"
    )


@dataclass(slots=True)
class _GameRun:
    """Where one game of the tournament stands."""

    setup: GameSetup
    first: int
    """Number of its first match in the tournament."""
    plans: list[MatchPlan]
    swiss: Swiss | None = None
    test: Sprt | None = None
    outcomes: dict[int, dict[str, float] | None] = field(default_factory=dict)
    """By index the points by player; None for a match that failed, and where no plan or test looks at them."""
    end: int = 0
    """Matches that count: all, or those up to the decision of a sequential test."""
    tested: int = 0
    """Matches that the sequential test has seen."""


class _Run:
    def __init__(
        self,
        asked: Tournament,
        store: Store,
        home: Path,
        folder: Path,
        number: int,
        progress: Progress | None,
    ) -> None:
        self.asked = asked
        self.store = store
        self.home = home
        self.folder = folder
        self.number = number
        self.progress = progress
        self.identity = asked.hash()[:8]
        self.specs = {player.name: player.spec for player in asked.players}
        self.games = list(self._games())
        self.waiting: list[Waiting] = []
        self.stored_at = time.monotonic()
        if asked.format == "swiss":  # later rounds were planned on these, so they stay as they are
            for failure, _, _ in store.failures(number):
                self._note(failure, None)
        for match in store.played(number):
            self._note(match.number, self._outcome(match.seats, match.forfeit))

    def _games(self) -> Iterator[_GameRun]:
        names, first = [player.name for player in self.asked.players], 0
        for setup in self.asked.games:
            about: dict[str, Any] = {
                "game": setup.game,
                "seats": setup.seats,
                "team_names": load_game(setup.game).team_names,
                "matches": setup.matches,
                "seed": self.asked.seed,
                "mode": setup.seating,
            }
            run = _GameRun(setup, first, [], end=setup.matches)
            if self.asked.format == "swiss":
                run.swiss = Swiss(names, **about)
            else:
                run.plans = list(plan(names, format=self.asked.format, **about))
            if self.asked.sprt is not None:
                run.test = Sprt(self.asked.sprt, paired=True)
            first += setup.matches
            yield run

    def play(self, pools: Pools) -> None:
        """Play what is left; whatever happens, what was finished is stored."""
        self._clean()
        try:
            while jobs := list(self._round()):
                for models in (True, False):  # a model that does not start ends the run at once
                    part = [(number, job) for number, job in jobs if has_policy(job) == models]
                    if part:
                        self._consume(pools.run(self._wanted(part), models=models))
                self._store(whole=True)
            self._drop_beyond()
        except BaseException:
            # The first error is the one to report, also where the disk then refuses these as well.
            with suppress(ArenaError):
                self._store()
                self.store.set_status(self.number, status=INTERRUPTED)
            raise
        failures = self.store.failures(self.number)
        self.store.set_status(self.number, status=FAILED if failures else FINISHED)

    def _round(self) -> Iterator[tuple[int, MatchJob]]:
        """Yield the jobs to be played next: the next round of a Swiss tournament, else all that is left."""
        open_jobs = [
            job
            for game in self.games
            if game.swiss is None or game.plans
            for job in self._jobs(game, [p for p in game.plans if p.index not in game.outcomes])
        ]
        while not open_jobs:
            advanced = False
            for game in self.games:
                if game.swiss is None:
                    continue
                results: dict[int, Points | None] = dict(game.outcomes)
                found = game.swiss.next_round(results)
                advanced = advanced or bool(found)
                game.plans += found
                open_jobs += self._jobs(game, [p for p in found if p.index not in game.outcomes])
            if not advanced:
                break
        yield from open_jobs

    def _jobs(self, game: _GameRun, plans: Iterable[MatchPlan]) -> Iterator[tuple[int, MatchJob]]:
        setup = game.setup
        for match in plans:
            if match.index >= game.end:
                return
            number = game.first + match.index
            yield (
                number,
                MatchJob(
                    match=f"{self.identity}-{number}",
                    plan=match,
                    seats=setup.seats,
                    players={name: self.specs[name] for name in match.players},
                    options=setup.options,
                    retries=self.asked.retries,
                    deadline_s=self.asked.deadline_s,
                    record=self.folder / f"{setup.game}-{match.index:06d}{SUFFIX}",
                ),
            )

    def _wanted(self, jobs: Sequence[tuple[int, MatchJob]]) -> Iterator[MatchJob]:
        for number, job in jobs:
            game = self._game_of(number)
            if number - game.first < game.end:
                yield job

    def _consume(self, reports: Iterable[MatchReport]) -> None:
        for report in reports:
            number = int(report.match.rpartition("-")[2])
            game = self._game_of(number)
            index = number - game.first
            seats = tuple((seat.player, seat.value) for seat in report.seats)
            forfeit = any(seat.ended == "forfeit" for seat in report.seats)
            self.waiting.append((number, game.plans[index].deal, report))
            self._note(number, self._outcome(seats, forfeit) if report.error is None else None)
            if len(self.waiting) >= BATCH or time.monotonic() - self.stored_at >= BATCH_S:
                self._store()
            if self.progress is not None:
                self.progress(sum(len(g.outcomes) for g in self.games), sum(g.end for g in self.games))

    def _outcome(self, seats: Sequence[tuple[str, float]], forfeit: bool) -> dict[str, float] | None:
        """Return the points of a match that was played; a sequential test looks at play alone."""
        return None if forfeit and self.asked.sprt is not None else points(seats)

    def _note(self, number: int, outcome: dict[str, float] | None) -> None:
        game = self._game_of(number)
        wanted = game.swiss is not None or game.test is not None
        game.outcomes[number - game.first] = outcome if wanted else None
        if game.test is not None:
            self._test(game)

    def _test(self, game: _GameRun) -> None:
        """Show the sequential test the pairs that are complete, in the order of the plan."""
        assert game.test is not None
        me = self.asked.players[0].name
        while game.test.status == "continue" and {game.tested, game.tested + 1} <= game.outcomes.keys():
            pair = [game.outcomes[game.tested], game.outcomes[game.tested + 1]]
            game.tested += 2
            if all(outcome is not None for outcome in pair):
                game.test.update(fsum(outcome[me] for outcome in pair if outcome) / 2)
            if game.test.status != "continue":
                game.end = game.tested

    def _store(self, *, whole: bool = False) -> None:
        """Store what waits. Under a sequential test only what it has seen, so that no more than that is kept."""
        ready: list[Waiting] = []
        later: list[Waiting] = []
        for item in self.waiting:
            game = self._game_of(item[0])
            index = item[0] - game.first
            seen = game.test is None or index < game.tested or (whole and index < game.end)
            (ready if seen else later).append(item)
        self.store.add_reports(self.number, reports=sorted(ready, key=lambda item: item[0]), home=self.home)
        self.waiting = later
        self.stored_at = time.monotonic()

    def _drop_beyond(self) -> None:
        """Remove the records of matches that were still under way when a sequential test decided."""
        for game in self.games:
            for index in range(game.end, game.setup.matches):
                (self.folder / f"{game.setup.game}-{index:06d}{SUFFIX}").unlink(missing_ok=True)

    def _clean(self) -> None:
        for part in self.folder.glob(f"*{PART_SUFFIX}"):
            with suppress(OSError):
                part.unlink()

    def _game_of(self, number: int) -> _GameRun:
        for game in reversed(self.games):
            if number >= game.first and game.setup.matches:
                return game
        raise TournamentError(f"match {number} is not in the plan")

    def result(self, wall_s: float) -> Result:
        """Return the standings over what is stored."""
        from arena.standings import leaderboard

        names = [player.name for player in self.asked.players]
        rated = self.store.rated_matches(tournament=self.number)
        failures = self.store.failures(self.number)
        uneven = {
            game.setup.game: list(lines)
            for game in self.games
            if game.plans and (lines := imbalance(game.plans[: game.end], players=names).lines)
        }
        return Result(
            tournament=f"t{self.number}",
            planned=self.asked.planned,
            played=len(rated),
            failed=len(failures),
            board=leaderboard(
                rated,
                players=names,
                sides={game.setup.game: load_game(game.setup.game).unlike_sides for game in self.games},
            ),
            imbalance=uneven,
            sprt=self._tests() if self.asked.sprt is not None else None,
            failures=[{"number": n, "match": match, "error": error} for n, match, error in failures],
            records=self.folder,
            wall_s=wall_s,
        )

    def _tests(self) -> dict[str, dict[str, Any]]:
        found = {}
        for game in self.games:
            assert game.test is not None
            found[game.setup.game] = {
                "status": game.test.status,
                "llr": game.test.llr,
                "lower": game.test.test.lower,
                "upper": game.test.test.upper,
                "pairs": game.test.outcomes,
                "score": game.test.score,
                "player": self.asked.players[0].name,
                "opponent": self.asked.players[1].name,
                "elo0": game.test.test.elo0,
                "elo1": game.test.test.elo1,
            }
        return found


def _locked(folder: Path, number: int) -> AbstractContextManager[None]:
    """Hold the tournament's folder for this process alone."""

    def unusable(error: OSError) -> StoreError:
        return StoreError(f"{folder}: cannot write records here: {error.strerror or error}")

    taken = TournamentError(f"tournament t{number} is being played by another process")
    return hold(folder, name=LOCK_NAME, mode=0o644, taken=taken, unusable=unusable)
