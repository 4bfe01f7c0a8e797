"""Who plays on from a record: the recorded players rebuilt, the reference, and stand-ins for those that are gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agents.base import Agent, Seat
from agents.credit.line import Line
from agents.credit.replay import Cast, Make, RandomReference
from agents.errors import BadCredit, NotRebuilt, PlayerError
from agents.players import Player, check_plays, make_agent
from agents.policy.base import BASE
from agents.policy.spec import POLICY, is_policy
from replays.record import SeatInfo

if TYPE_CHECKING:
    from agents.policy.service import Policies

MakeAgent = Callable[[str, Seat], Agent]

RANDOM = "random"
_ADAPTER = ", adapter "


async def make_cast(
    line: Line,
    *,
    reference: str = RANDOM,
    stand_in: str | None = None,
    make: MakeAgent | None = None,
    policies: "Policies | None" = None,
) -> Cast:
    """Return who plays on.

    Args:
        line: the recorded match.
        reference: spec of who takes the place of a seat that is replaced.
        stand_in: spec of who plays on for a recorded player that cannot be rebuilt (a person, a foreign program, a
            language model whose engine does not run); None refuses such a record.
        make: makes bots from their specs.
        policies: the engines that run; None where none does.

    Raises `NotRebuilt`, `BadCredit` for a reference or stand-in that cannot play, or `PolicyError`.
    """
    casting = _Casting(line, make or make_agent, policies)
    referee = RandomReference if reference == RANDOM else await casting.named(reference, "reference")
    standing = None if stand_in is None else await casting.named(stand_in, "stand-in")
    own: list[Make] = []
    for seat, info in enumerate(line.header.seats):
        try:
            own.append(await casting.recorded(seat, info))
        except (PlayerError, NotRebuilt) as error:
            if standing is None:
                raise NotRebuilt(
                    f"seat {seat}: {info.name[:40]} ({info.spec[:60]}) cannot be rebuilt to play on: {error}; "
                    "name a player that stands in for it"
                ) from None
            casting.notes.append(f"seat {seat}: {stand_in} plays on for {info.name} ({info.spec})")
            own.append(standing)
    return Cast(tuple(own), referee, casting.instant, tuple(casting.notes))


class _Casting:
    def __init__(self, line: Line, make: MakeAgent, policies: "Policies | None") -> None:
        self.line = line
        self.make = make
        self.policies = policies
        self.instant = True
        self.notes: list[str] = []

    async def named(self, spec: str, what: str) -> Make:
        """Return the maker of a player that was asked for by its spec."""
        try:
            if self.make is make_agent:
                check_plays(Player(spec, spec), game=self.line.game.name)
            return (await self._made(spec))[0]
        except (PlayerError, NotRebuilt) as error:
            raise BadCredit(f"{what}: {error}") from None

    async def recorded(self, seat: int, info: SeatInfo) -> Make:
        """Return the maker of a recorded player, in the version that was recorded where there are versions."""
        spec = info.spec
        if spec.partition(":")[0] == POLICY and _ADAPTER in info.policy:
            adapter = info.policy.rpartition(_ADAPTER)[2]
            spec = POLICY if adapter == BASE else f"{POLICY}:{adapter}"
        make, probe = await self._made(spec)
        agent, policy = f"{type(probe).__name__} {probe.version}", probe.policy
        if info.agent and agent != info.agent:
            self.notes.append(f"seat {seat}: recorded was {info.agent}, {agent} plays on")
        if info.policy and policy != info.policy:
            self.notes.append(f"seat {seat}: recorded was {info.policy}, {policy or 'no model'} plays on")
        return make

    async def _made(self, spec: str) -> tuple[Make, Agent]:
        line, make = self.line, self.make
        seat = Seat(line.game, line.seats, line.final.options, 0, 0)
        if is_policy(spec):
            policies = self.policies
            if policies is None:
                raise NotRebuilt("its language model does not run here")
            pinned = await policies.pin(spec)
            probe: Agent = policies.agent(spec, seat, adapter=pinned)
            await probe.close()
            self.instant = False
            return lambda seat: policies.agent(spec, seat, match="credit", adapter=pinned), probe
        probe = make(spec, seat)
        self.instant = self.instant and probe.instant
        return lambda seat: make(spec, seat), probe
