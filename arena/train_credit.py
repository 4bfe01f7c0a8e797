"""What divides results before they are learned from: nothing, step labels (ADCA), or counterfactual shares (Shapley).

A judge that fails leaves decisions neutral; a record that gives no credit leaves its outcomes as they are. Both are
counted, and neither ends a run.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from agents.credit.adca import AdcaSettings, fuse
from agents.credit.base import Method, make_method
from agents.credit.labels import Labeller
from agents.errors import CreditError
from agents.policy.service import Policies
from agents.training.advantages import Process
from agents.training.config import TrainConfig
from agents.training.trajectories import Trajectory
from arena.config import Settings
from arena.labellers import open_labeller
from arena.train_attempts import Attempts
from arena.train_rollouts import Rollouts
from games.rng import derive_seed
from replays.record import Record


@dataclass(slots=True)
class Divided:
    """What `agents.training.advantages` takes beside the trajectories; and what it cost.

    `outcomes` are in place of the trajectories' own, `labels` of their steps, None where there are none.
    """

    outcomes: list[float] | None = None
    labels: list[list[float]] | None = None
    process: Process | None = None
    matches: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    replays: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def cost(self) -> dict[str, Any]:
        """Return what it cost, for the metrics."""
        if not self.matches:
            return {}
        return {
            "matches": self.matches,
            "model_calls": self.model_calls,
            "tokens": self.prompt_tokens + self.completion_tokens,
            "replays": self.replays,
            "neutral": dict(sorted(self.causes.items())),
        }


class Credits:
    """Divides the results of an update.

    Args:
        config: says how.
        labellers: of decisions, by game (adca).
        method: of shares (shapley).
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        labellers: Mapping[str, Labeller] | None = None,
        method: Method | None = None,
    ) -> None:
        self.config = config
        self._labellers = dict(labellers or {})
        self._method = method

    @classmethod
    @asynccontextmanager
    async def open(
        cls, config: TrainConfig, *, policies: Policies, settings: Settings
    ) -> AsyncIterator[Self]:
        """Yield it with the judges that it needs. Raises a `CreditError` or `PolicyError` in one line."""
        credit = config.credit
        if not config.games or credit.method == "none":
            yield cls(config)
        elif credit.method == "shapley":
            method = make_method(
                "shapley",
                reference=credit.reference,
                stand_in=credit.stand_in,
                least=credit.least_replicates,
                error=credit.error,
                steps=False,
                seed=config.seed,
                policies=policies if credit.stand_in is None else None,
            )
            yield cls(config, method=method)
        else:
            async with AsyncExitStack() as stack:
                labellers = {
                    game: await stack.enter_async_context(
                        open_labeller(
                            credit.labels,
                            game=game,
                            home=settings.home,
                            settings=policies.settings,
                            judge=None if credit.judge is None else Path(credit.judge),
                        )
                    )
                    for game in sorted({one.game for one in config.games})
                }
                yield cls(config, labellers=labellers)

    async def divide(self, rollouts: Rollouts, attempts: Attempts) -> Divided:
        """Return what the trajectories of both, in this order, are learned from."""
        found = Divided()
        credit, tasks = self.config.credit, self.config.tasks
        games, trials = rollouts.trajectories, attempts.trajectories
        if self._method is not None and games:
            await self._share(rollouts, found)
            assert found.outcomes is not None
            found.outcomes += [one.outcome for one in trials]
        labels: list[list[float]] = [[0.0] * len(one.steps) for one in (*games, *trials)]
        if self._labellers and games:
            await self._label(rollouts, labels, found)
        for place, values in enumerate(attempts.labels, len(games)):
            labels[place] = [float(value) for value in values]
        if self._labellers or any(map(any, attempts.labels)):
            alpha = credit.alpha if self._labellers else tasks.attributing.alpha
            found.labels = labels
            fusing = AdcaSettings(alpha=alpha, bound=credit.bound, discount=credit.discount)
            found.process = partial(_fused, settings=fusing)
        return found

    async def _label(self, rollouts: Rollouts, labels: list[list[float]], found: Divided) -> None:
        places = _places(rollouts.trajectories)
        for record in rollouts.records:
            own = {seat: place for (match, seat), place in places.items() if match == record.header.match}
            if not own:
                continue
            try:
                seats = await self._labellers[record.header.game].label(record, seats=own)
            except CreditError as error:
                found.causes[error.code] += 1
                continue
            found.matches += 1
            for seat, said in seats.items():
                found.model_calls += said.model_calls
                found.prompt_tokens += said.prompt_tokens
                found.completion_tokens += said.completion_tokens
                found.causes.update(said.counts)
                by_ply = {step.ply: float(step.value) for step in said.steps}
                one = rollouts.trajectories[own[seat]]
                labels[own[seat]] = [by_ply.get(step.ply, 0.0) for step in one.steps]

    async def _share(self, rollouts: Rollouts, found: Divided) -> None:
        """Put each seat's counterfactual share, times its team's seats, in place of its return."""
        assert self._method is not None
        found.outcomes = [one.outcome for one in rollouts.trajectories]
        places = _places(rollouts.trajectories)
        for record in rollouts.records:
            chance = random.Random(derive_seed(self.config.seed, "credit", record.header.match))
            if chance.random() >= self.config.credit.share:
                continue
            for team in _teams(record):
                seats = [place for place in places if place[0] == record.header.match]
                if not any(rollouts.trajectories[places[one]].team == team for one in seats):
                    continue
                try:
                    credit = await self._method.credit(record, team=team)
                except CreditError as error:
                    found.causes[error.code] += 1
                    continue
                found.matches += 1
                found.replays += credit.cost.replays
                found.model_calls += credit.cost.model_calls
                for seat in credit.seats:
                    place = places.get((record.header.match, seat.seat))
                    if place is not None:
                        found.outcomes[place] = seat.credit * len(credit.seats)


def _fused(
    outcomes: Sequence[float], labels: Sequence[Sequence[float]], *, settings: AdcaSettings
) -> list[list[float]]:
    return fuse(outcomes, labels, settings)


def _places(trajectories: Sequence[Trajectory]) -> dict[tuple[str, int], int]:
    return {(one.match, one.seat): place for place, one in enumerate(trajectories)}


def _teams(record: Record) -> list[str]:
    """Return the teams of a match that have more than one seat: alone, a seat's share is its return."""
    assert record.footer is not None
    counts = Counter(record.footer.outcome.teams)
    return [team for team, seats in counts.items() if seats > 1]
