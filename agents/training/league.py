"""Against whom the learner plays: itself, its past versions, bots.

Each deal is given one opponent: first the kind by its share, then one of the kind, all alike or, prioritised, with
the weight (1 - p)^power, where p is the learner's share of the points against it (so those that it cannot beat yet
come most often; one that it has not met yet counts as p = 1/2). Old results fade.

What is drawn depends on the state and on the seed that is given, so a run that is resumed draws as it would have.

Source: O. Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement learning", Nature 575
(2019): prioritised fictitious self-play.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agents.errors import BadCheckpoint
from agents.training.config import LeagueSettings

ITSELF = "itself"
Kind = Literal["itself", "past", "bot"]


@dataclass(slots=True)
class Member:
    """An opponent: how it is written as a player, and what came of the matches with it.

    `met` and `points` are the matches' weights and the learner's points in them (1 for a win, 0.5 for a draw).
    """

    kind: Kind
    spec: str
    since: int = 0
    """The update at which it came in."""
    met: float = 0.0
    points: float = 0.0
    matches: int = 0
    """All that were ever played."""

    @property
    def share(self) -> float:
        """The learner's share of the points, with one win and one loss that were never played."""
        return (self.points + 1) / (self.met + 2)


class League:
    """The opponents of a run; `settings` state the shares, and how one of a kind is drawn."""

    def __init__(self, settings: LeagueSettings) -> None:
        self.settings = settings
        self.itself = Member("itself", ITSELF)
        self.bots = [Member("bot", spec) for spec in settings.opponents]
        self.past: list[Member] = []

    @property
    def members(self) -> list[Member]:
        """All opponents, the learner itself first."""
        return [self.itself, *self.past, *self.bots]

    def draw(self, seed: int, *, barred: Sequence[str] = ()) -> Member:
        """Return an opponent for a deal; `barred` are specs that cannot play it."""
        chance = random.Random(seed)
        settings = self.settings
        bots = [one for one in self.bots if one.spec not in barred]
        shares = {
            "itself": settings.itself,
            "past": settings.past if self.past else 0.0,
            "bot": settings.bots if bots else 0.0,
        }
        total = sum(shares.values())
        if total <= 0:  # only what is not there, or cannot play, has a share
            return self.itself
        place = chance.random() * total
        kind = next(name for name, upto in _sums(shares) if place < upto)
        if kind == "itself":
            return self.itself
        among = self.past if kind == "past" else bots
        if settings.sampling == "latest" and kind == "past":
            return among[-1]
        weights = [1.0] * len(among)
        if settings.sampling == "prioritised":
            weights = [max((1 - one.share) ** settings.power, 1e-6) for one in among]
        (drawn,) = chance.choices(among, weights)
        return drawn

    def note(self, spec: str, *, points: float, matches: int = 1) -> None:
        """Count matches with an opponent. One that was let go meanwhile is passed over."""
        for member in self.members:
            if member.spec == spec:
                member.met += matches
                member.points += points
                member.matches += matches

    def fade(self) -> None:
        """Let what was counted so far weigh less. Called once an update."""
        for member in self.members:
            member.met *= self.settings.memory
            member.points *= self.settings.memory

    def take_in(self, spec: str, *, update: int) -> list[str]:
        """Keep a past version, and return the specs of those that are let go for it.

        The first and the latest stay; of the others the one that leaves the smallest gap goes, so that those that
        are kept stand for the whole run.
        """
        self.past.append(Member("past", spec, since=update))
        gone = []
        while len(self.past) > self.settings.keep:
            place = 0
            if len(self.past) > 2:
                gaps = [
                    (self.past[i + 1].since - self.past[i - 1].since, i) for i in range(1, len(self.past) - 1)
                ]
                place = min(gaps)[1]
            gone.append(self.past.pop(place).spec)
        return gone

    def state(self) -> dict[str, Any]:
        """Return all that it knows, as plain data."""
        return {"members": [asdict(member) for member in self.members]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `state` says; bots that the settings do not name any more are dropped, new ones are fresh.

        Raises `BadCheckpoint` for what is no state.
        """
        try:
            members = [Member(**one) for one in state["members"]]
            (self.itself,) = [one for one in members if one.kind == "itself"]
        except (KeyError, TypeError, ValueError) as error:
            raise BadCheckpoint(f"checkpoint: its league cannot be read: {error}") from None
        self.past = [one for one in members if one.kind == "past"]
        known = {one.spec: one for one in members if one.kind == "bot"}
        self.bots = [known.get(spec, Member("bot", spec)) for spec in self.settings.opponents]


def _sums(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the running sums, those without a share left out."""
    found, total = [], 0.0
    for name, share in shares.items():
        if share > 0:
            total += share
            found.append((name, total))
    last, _ = found[-1]
    found[-1] = (last, float("inf"))  # whatever is lost in rounding
    return found
