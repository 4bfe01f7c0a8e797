"""A seat at a match as a program sees it: events and turns as they arrive, the view folded, the result.

Everything here happens in the event loop of the connection that the seat belongs to; see `clients.sdk`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, Protocol

from clients.errors import ClientError, SeatLost
from clients.protocol import messages as wire
from clients.protocol.client import CLOSING_KINDS
from games.base import Event, Game
from games.errors import RulesVersionMismatch
from games.registry import load_game
from games.spaces import Action, ActionSpace, space_from_data

Receipt = Literal["taken", "answered", "deadline", "closed", "unknown"]
"""What became of an answer: `taken` (whether it was legal shows in what follows), or why it was dropped."""


class Line(Protocol):
    """What a seat needs of its connection."""

    def act(self, match: str, **answer: Any) -> bool:
        """Send an answer; False where its turn is no longer open."""

    def leave(self, match: str) -> None:
        """Give up a seat."""


class Turn:
    """The seat must act. Answer with `play`, `pass_` or `decline`, once.

    Attributes:
        match: the match it belongs to; `match.view` is what the seat knows.
        request: its number.
        space: what may be done.
        describe: the same in one line.
        attempt: from 0; a failed answer is asked again, and `failure` and `reason` say what was wrong.
        bank_s: seconds of banked time that `seconds_left` includes.
    """

    def __init__(self, match: "Match", asked: wire.Turn) -> None:
        self.match = match
        self.request = asked.request
        self.space: ActionSpace = space_from_data(asked.space)
        self.describe = asked.describe
        self.attempt = asked.attempt
        self.failure = asked.failure
        self.reason = asked.reason
        self.json_schema = asked.json_schema
        self._receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self.wind(asked)

    @property
    def open(self) -> bool:
        """Whether it can still be answered."""
        return not self._receipt.done()

    def seconds_left(self) -> float:
        """Return the seconds until the default is played, banked time included."""
        return max(0.0, self._ends - asyncio.get_running_loop().time())

    async def play(self, action: Action, *, thought: str | None = None) -> Receipt:
        """Answer with an action; a `thought` is private to the record.

        The action is judged by the server: one that is not in `space` is asked again as long as there are
        retries. Waits for the receipt, through a lost connection as well.

        Raises `ProtocolError` for an action that cannot be sent, and `ClientError` where the seat is lost.
        """
        return await self._answer(action=action, thought=thought)

    async def pass_(self, *, thought: str | None = None) -> Receipt:
        """Answer with the space's default, which is what would be played for a seat that is silent."""
        return await self._answer(action=self.space.default, thought=thought)

    async def decline(
        self,
        reason: str = "",
        *,
        failure: Literal["unparsed", "ambiguous", "error"] = "unparsed",
        thought: str | None = None,
    ) -> Receipt:
        """Say that there is no answer, and why: it is asked again (`error` is not), then the default is played."""
        return await self._answer(failure=failure, reason=reason, thought=thought)

    async def wait_closed(self) -> None:
        """Wait until it can no longer be answered: it was, its time ran out, or the match ended."""
        await asyncio.wait([self._receipt])

    def wind(self, asked: wire.Turn) -> None:
        """Set the clock by a turn that came, or came again."""
        self.asked = asked
        self.bank_s = asked.bank_s
        self._ends = asyncio.get_running_loop().time() + asked.deadline_s

    def close(self, receipt: Receipt) -> None:
        """Note what became of it."""
        if not self._receipt.done():
            self._receipt.set_result(receipt)

    def fail(self, error: ClientError) -> None:
        """Note that nothing can become of it any more."""
        if not self._receipt.done():
            self._receipt.set_exception(error)
            # Nobody need wait for it; who does is told all the same.
            self._receipt.exception()

    async def _answer(self, **answer: Any) -> Receipt:
        if self.open and not self.match.line.act(self.match.id, request=self.request, **answer):
            return "answered"
        return await asyncio.shield(self._receipt)


Update = Event | Turn | wire.Over


class Match:
    """A seat at a match. Iterate it for turns, or `updates` for everything that the seat is told.

    Attributes:
        id: of the match at the server.
        seat, seats: the own seat and how many there are, from 0.
        game, options: the rules; `game.narrate(event)` gives an event as a sentence.
        names: as shown, by seat; empty while they are not to be known.
        view: what the seat knows: the game's view, folded from its events.
        events: all events that it was told.
        turn: the open turn, or None.
        over: how the match ended, or None.

    Raises `UnknownGame` or `RulesVersionMismatch` where the game here is not the one that the server plays.
    """

    def __init__(self, line: Line, seated: wire.Seated) -> None:
        self.game: Game = load_game(seated.game)
        if seated.rules != self.game.version:
            raise RulesVersionMismatch(
                f"{seated.game}: the server plays rules {seated.rules}, installed are {self.game.version}"
            )
        self.line = line
        self.id = seated.match
        self.seat = seated.seat
        self.seats = seated.seats
        self.options = self.game.parse_options(seated.options)
        self.names = tuple(seated.names)
        self.retries = seated.retries
        self.deadline_s = seated.deadline_s
        self.view: Any = self.game.view(seated.seat)
        self.events: list[Event] = []
        self.turn: Turn | None = None
        self.over: wire.Over | None = None
        self._log: list[Update] = []
        self._error: ClientError | None = None
        self._changed = asyncio.Event()

    @property
    def ended(self) -> str | None:
        """How it ended for this seat: `won`, `lost`, `drawn`, `turn_limit`, `forfeit`, or None while it goes on."""
        return None if self.over is None else self.over.ended[self.seat]

    async def updates(self, *, since: int = 0) -> AsyncIterator[Update]:
        """Give everything that the seat is told, in order, from the first (or from number `since`) to `over`.

        Raises `SeatLost` where the seat is gone, `Disconnected` where the connection is.
        """
        at = since
        while True:
            if at < len(self._log):
                update = self._log[at]
                at += 1
                yield update
            elif self.over is not None:
                return
            elif self._error is not None:
                raise self._error
            else:
                await self._changed.wait()

    async def __aiter__(self) -> AsyncIterator[Turn]:
        """Give the turns, each while it is open, until the match is over."""
        async for update in self.updates():
            if isinstance(update, Turn) and update.open:
                yield update

    async def result(self) -> wire.Over:
        """Wait for the end and return it. Raises `SeatLost` or `Disconnected`."""
        async for _ in self.updates(since=len(self._log)):
            pass
        assert self.over is not None
        return self.over

    def leave(self) -> None:
        """Give the seat up; it is then forfeited, and `updates` raises `SeatLost`."""
        self.line.leave(self.id)

    # What the connection calls

    def take(self, message: wire.Message) -> None:
        """Take what the server says of this match. Raises whatever the game does that cannot read it."""
        match message:
            case wire.Events():
                for kind, data, *_ in message.events:
                    event = Event(kind, data)
                    self.view.update(event)
                    self.events.append(event)
                    self._log.append(event)
                    if kind in CLOSING_KINDS:
                        self._close_turn("deadline" if kind == "forced" else "closed")
            case wire.Turn():
                # One that was open has been answered, or another would not be asked.
                self._close_turn("taken")
                self.turn = Turn(self, message)
                self._log.append(self.turn)
            case wire.Acted() | wire.Stale():
                if self.turn is not None and self.turn.request == message.request:
                    self._close_turn("taken" if isinstance(message, wire.Acted) else message.reason)
            case wire.Over():
                self.over = message
                self._close_turn("taken")
                self._log.append(message)
        self._tell()

    def fail(self, error: ClientError) -> None:
        """End the seat without the match."""
        if self.over is None and self._error is None:
            self._error = error
            if self.turn is not None:
                self.turn.fail(error)
                self.turn = None
            self._tell()

    def _close_turn(self, receipt: Receipt) -> None:
        if self.turn is not None:
            self.turn.close(receipt)
            self.turn = None
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Ticket:
    """A request for a seat: wait for its `match`, or iterate it for the matches of a tournament.

    Attributes:
        id: of the request.
        waiting: the waiting place as it was told last: `filled` of `seats`, `starts_in_s`.
        lasting: whether several seats come of it.
    """

    def __init__(
        self,
        identity: str,
        *,
        withdraw: Callable[[str], None],
        on_waiting: Callable[[wire.Waiting], None] | None = None,
        lasting: bool = False,
    ) -> None:
        self.id = identity
        self.lasting = lasting
        self.waiting: wire.Waiting | None = None
        self._withdraw = withdraw
        self._on_waiting = on_waiting
        self._matches: list[Match] = []
        self._given = 0
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    async def match(self) -> Match:
        """Wait for the seat. Raises `Refused`, `SeatLost`, `Disconnected`, or what `Match` raises."""
        while self._given == len(self._matches):
            if self._end is not None:
                raise self._end
            await self._changed.wait()
        self._given += 1
        return self._matches[self._given - 1]

    async def __aiter__(self) -> AsyncIterator[Match]:
        """Give the seats as they come, until the tournament is over."""
        while True:
            try:
                match = await self.match()
            except SeatLost as lost:
                if lost.reason == "over":
                    return
                raise
            yield match

    def withdraw(self) -> None:
        """Give the waiting place up; who waits for the match is told by `SeatLost`."""
        if self._end is None:
            self._withdraw(self.id)
            self.fail(SeatLost("left", "the waiting place was given up"))

    # What the connection calls

    def take_waiting(self, waiting: wire.Waiting) -> None:
        """Note how the place fills."""
        self.waiting = waiting
        if self._on_waiting is not None:
            self._on_waiting(waiting)

    def take_match(self, match: Match) -> None:
        """Add a seat."""
        self._matches.append(match)
        if not self.lasting:
            self.fail(SeatLost("over", "the request has had its seat"))
        self._tell()

    def fail(self, error: Exception) -> None:
        """End it."""
        if self._end is None:
            self._end = error
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Challenge:
    """Somebody asks the player of this connection for a match of `game` with `options`."""

    def __init__(self, asked: wire.Challenged, respond: Callable[[str, bool], Ticket]) -> None:
        self.opponent = asked.opponent
        self.game = asked.game
        self.options = asked.options
        self._ticket, self._respond = asked.ticket, respond

    def accept(self) -> Ticket:
        """Accept; return what the seat comes of."""
        return self._respond(self._ticket, True)

    def decline(self) -> None:
        """Decline."""
        self._respond(self._ticket, False)


class Watching:
    """A match that is watched: what came of it and was not read yet."""

    def __init__(self) -> None:
        self.id = ""
        self.queue: asyncio.Queue[wire.Snapshot | wire.Frames | ClientError] = asyncio.Queue()
