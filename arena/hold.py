"""A seat that a connection holds: how much of it the client was told, and what comes next."""

from collections.abc import Callable
from dataclasses import dataclass

from arena.frames import Frame, events_frame, turn_frame
from arena.live import RemoteAgent
from clients.protocol.codec import MAX_BATCH, encode
from clients.protocol.messages import Seated
from games.text import clean_name


@dataclass(slots=True, eq=False)
class Hold:
    """A cursor into what a seat was told.

    Args:
        agent: the seat.
        sent: events that the client has.
        turn: the last request that was sent as a turn.
    """

    agent: RemoteAgent
    sent: int
    turn: int = 0

    @property
    def told(self) -> bool:
        """Whether every event so far was sent."""
        return self.sent >= len(self.agent.log)

    def seated(self, request: str) -> Seated:
        """Return the message that gives the seat, as the answer to `request`."""
        agent, info = self.agent, self.agent.info
        return Seated(
            id=request,
            match=info.match,
            game=info.game,
            rules=info.rules,
            options=dict(info.options),
            seats=agent.seat.seats,
            seat=agent.seat.seat,
            names=[clean_name(name) for name in info.names],
            resume=agent.resume,
            events=len(agent.log),
            retries=agent.retries,
            deadline_s=agent.clocks.deadline_s,
        )

    def news(self, *, schema: bool, clock: Callable[[], float], subprotocol: str) -> list[Frame]:
        """Return the next frames: a batch of events, and after the last one the open turn or the end.

        Args:
            schema: whether a turn's action space goes out as a JSON schema too.
            clock: seconds, those that the turn's deadline is measured by.
            subprotocol: the encoding.
        """
        agent = self.agent
        frames: list[Frame] = []
        match = agent.info.match
        batch = agent.log[self.sent : self.sent + MAX_BATCH]
        if batch:
            count, events = events_frame(match, batch, first=self.sent, subprotocol=subprotocol)
            self.sent += count
            frames.append(events)
            if not self.told:
                return frames
        asked = agent.asked
        if agent.over is not None:
            frames.append(encode(agent.over, subprotocol=subprotocol))
        elif asked is not None and asked.state is None and asked.request != self.turn:
            self.turn = asked.request
            frames.append(
                turn_frame(
                    match,
                    asked.request,
                    asked.turn,
                    deadline_s=max(0.0, asked.ends_at - clock()),
                    bank_s=agent.bank_s,
                    schema=schema,
                    subprotocol=subprotocol,
                )
            )
        return frames
