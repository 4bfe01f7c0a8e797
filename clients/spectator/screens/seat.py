"""A seat: the match as a person at the table sees it, and the answers to its turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from clients.errors import ClientError, SeatLost
from clients.human import Sat, action_title, result_title, trouble_of
from clients.match import Match, Turn, Update
from clients.protocol.messages import Over
from clients.spectator.app import SpectatorApp
from clients.spectator.screens.dialogs import AskDialog
from clients.spectator.screens.match import MatchScreen
from clients.spectator.settings import Settings
from clients.spectator.source import Batch, EventSource, MatchInfo
from clients.spectator.widgets.answer import AnswerPanel, Given
from clients.spectator.widgets.scrubber import Scrubber
from games.base import Event
from games.errors import ArenaError
from games.spaces import Action, Text
from games.text import clean_name, quote
from replays.record import SeatInfo
from replays.visitors import Perspective

ROOMY_ROWS = 24
"""Rows from which on the scrubber is shown."""
TICK_S = 0.5
"""Seconds between two looks at the clock."""
PARTING_S = 3.0
"""Seconds that the server has to say that a seat was given up."""

LATE = {
    "deadline": "Too late: your time had run out, and the default was played.",
    "answered": "The turn had been answered already.",
    "closed": "The turn was closed before your answer came.",
    "unknown": "The server knows nothing of this turn; your answer was dropped.",
}


class SeatSource(EventSource):
    """The events of a seat; what else it is told goes to `told`."""

    def __init__(self, match: Match) -> None:
        self.name = match.id
        self.told: Callable[[Update], None] = lambda update: None
        self._match = match
        self._closed = asyncio.Event()

    async def batches(self) -> AsyncIterator[Batch]:
        match = self._match
        count = 0
        yield Batch(info=_info(match))
        async for update in match.updates():
            if count < len(match.events):
                fresh = tuple(match.events[count:])
                count = len(match.events)
                yield Batch(fresh, over=match.over is not None)
            self.told(update)
        yield Batch(over=True)

    async def switch(self, perspective: Perspective) -> None:
        raise SeatLost("left", "a seat sees with its own eyes")

    async def close(self) -> None:
        self._closed.set()


class _Closed(NamedTuple):
    """A turn can no longer be answered."""

    turn: Turn


class SeatScreen(MatchScreen, inherit_bindings=False):
    """A match from one seat.

    Args:
        match: the seat.
        last: whether no other match follows.

    It is dismissed when the person goes; `sat` then says how it was.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys and signs"),
        Binding("tab", "answer", "Answer", tooltip="To the answer, and back to the feed", priority=True),
        Binding("left", "step(-1)", "Back", show=False, key_display="←", tooltip="One event back"),
        Binding("right", "step(1)", "Step", show=False, key_display="→", tooltip="One event on"),
        Binding("f", "follow", "Follow", show=False, tooltip="Go to the newest event and stay there"),
        Binding("slash", "search", "Search", key_display="/", tooltip="Find words in the match"),
        Binding("n", "hit(1)", "Next hit", show=False, tooltip="To the next place where the words stand"),
        Binding("N", "hit(-1)", "Hit before", show=False, tooltip="To the place before"),
        Binding("v", "filter", "Filter", show=False, tooltip="Choose what the feed shows"),
        Binding(
            "escape", "leave", "To the feed", show=False, tooltip="Close the search, or leave the answer"
        ),
        Binding("q", "leave_seat", "Leave", tooltip="Leave the table, which forfeits the seat"),
    ]

    def __init__(self, match: Match, *, last: bool = True) -> None:
        self.seat_source = SeatSource(match)
        super().__init__(self.seat_source)
        self.match = match
        self.sat = Sat(match)
        self.asked: Turn | None = None
        """The turn that is on the screen."""
        self.ended = False
        """Whether there is nothing more to play."""
        self._last = last
        self._trouble = ""
        self._draft = ""
        self._connection = ""
        self._leaving = False
        self._changes: asyncio.Queue[Update | _Closed | None] = asyncio.Queue()

    def compose(self) -> ComposeResult:
        banner = Static("", id="connection", markup=False)
        banner.display = False
        yield banner
        for widget in super().compose():
            if isinstance(widget, Scrubber):
                yield AnswerPanel(id="answer")
            yield widget

    def on_mount(self) -> None:
        """Begin to answer, and to look at the clock; the reading begins as in every match screen."""
        self.seat_source.told = self._changes.put_nowait
        self._panel_widget.headline.rest = ("The match begins.", "dim")
        self.set_interval(TICK_S, self.tick)
        self.run_worker(self._answer(), name="answer")

    def on_resize(self) -> None:
        """Leave the room to the answer where there is little."""
        self.query_one(Scrubber).display = self.size.height >= ROOMY_ROWS

    @property
    def _panel_widget(self) -> AnswerPanel:
        return self.query_one(AnswerPanel)

    @property
    def _settings(self) -> Settings:
        return self.app.settings if isinstance(self.app, SpectatorApp) else Settings()

    def connection(self, trouble: str) -> None:
        """Say what is wrong with the connection; empty for nothing."""
        self._connection = trouble
        for banner in self.query("#connection").results(Static):
            banner.display = bool(trouble)
            banner.update(trouble)

    def take(self, batch: Batch) -> None:
        """Take events; say what the referee had to do at this seat."""
        for entry in batch.entries:
            if isinstance(entry, Event):
                self._trouble = trouble_of(self.match, entry) or self._trouble
        super().take(batch)
        self.tick()

    async def _read(self) -> None:
        try:
            async for batch in self.seat_source.batches():
                self.take(batch)
        except ArenaError as error:
            self.sat.error = str(error)
        self._changes.put_nowait(None)

    async def _answer(self) -> None:
        """Show turns as they come, until there are no more."""
        while (update := await self._changes.get()) is not None:
            if not self.query(AnswerPanel):
                return  # the screen is being taken down
            if isinstance(update, _Closed):
                await self._put_away(update.turn)
            elif isinstance(update, Turn):
                if update.open:
                    await self._ask(update)
            elif isinstance(update, Over):
                await self._end(result_title(self.match))
        if not self.ended and self.query(AnswerPanel):
            await self._end(f"Your seat is gone: {self.sat.error}")
        if self._leaving:
            self.dismiss()

    async def _ask(self, turn: Turn) -> None:
        again = turn.attempt > 0
        self.sat.turns += not again
        trouble = self._trouble
        if again:
            allowed = self.match.retries + 1
            trouble = f"Not taken ({turn.failure}): {turn.reason} Attempt {turn.attempt + 1} of {allowed}."
        draft = self._draft if again and isinstance(turn.space, Text) else ""
        self._trouble = ""
        if self.asked is not None:
            await self._put_away(self.asked)
        self.asked = turn
        await self._panel_widget.ask(turn, trouble=trouble, draft=draft)
        self._focus_answer()
        if self._settings.bell and not again:
            self.app.bell()
        self.run_worker(self._watch(turn), name="turn")

    async def _watch(self, turn: Turn) -> None:
        """Tell `_answer` when a turn can no longer be answered: what it does, it does one by one."""
        with contextlib.suppress(ClientError):
            await turn.wait_closed()
        self._changes.put_nowait(_Closed(turn))

    def _take_back(self) -> None:
        """Take back the question whether an answer is meant."""
        screen = self.app.screen
        if isinstance(screen, AskDialog) and isinstance(screen.about, Turn):
            screen.dismiss(False)

    async def _put_away(self, turn: Turn) -> None:
        if self.asked is turn:
            self._take_back()
            self.asked = None
            self._feed.focus()
            if not self.ended:
                await self._panel_widget.rest("Waiting for the others …", trouble=self._trouble)

    async def _end(self, text: str) -> None:
        self.ended = True
        self.asked = None
        self._take_back()
        style = "title bold" if self.match.over is not None else "error bold"
        after = "q leaves" if self._last else "q goes on to the next match"
        await self._panel_widget.rest(f"{text}  ·  {after}", style, trouble="")
        self._feed.focus()

    def tick(self) -> None:
        """Bring the clock up to date."""
        if self.asked is not None and self.query(AnswerPanel):
            self._panel_widget.headline.redraw()

    # Answering

    def on_key(self, event: events.Key) -> None:
        """Choose by key, wherever the focus is."""
        if event.character and self._panel_widget.pick(event.character):
            event.stop()
            event.prevent_default()

    def on_given(self, event: Given) -> None:
        """Ask whether it is meant, and send it."""
        event.stop()
        turn, action = self.asked, event.action
        if turn is None:
            return
        if isinstance(turn.space, Text) or not self._settings.confirm:
            self._send(turn, action)
            return
        label = clean_name(turn.space.label.replace("_", " "))
        asked = f"{label.capitalize()}: {self._title(action)}?"

        def answered(yes: bool | None) -> None:
            if yes and self.asked is turn:
                self._send(turn, action)

        self.app.push_screen(AskDialog(asked, "This cannot be taken back.", about=turn), answered)

    def _title(self, action: Action) -> str:
        return action_title(action, names=self.match.names, seats=self.match.seats)

    def _send(self, turn: Turn, action: Action) -> None:
        if isinstance(turn.space, Text):
            self._draft = str(action)
            self._panel_widget.sent(quote(self._draft) if action else "nothing said")
        else:
            self._panel_widget.sent(self._title(action))
        self.run_worker(self._play(turn, action), name="play")

    async def _play(self, turn: Turn, action: Action) -> None:
        try:
            receipt = await turn.play(action)
        except ClientError as error:
            self._panel_widget.wrong(str(error))
            return
        if receipt in LATE:
            self._trouble = LATE[receipt]
            if not self.ended and self.asked is None:
                self._panel_widget.wrong(self._trouble)

    def _focus_answer(self) -> None:
        widget = self._panel_widget.widget
        searching = isinstance(self.focused, Input)
        if widget is not None and not searching and self.is_current:
            widget.focus()

    def action_answer(self) -> None:
        """Go from the feed to the answer, and back."""
        if self._feed.has_focus:
            self._focus_answer()
        else:
            self._feed.focus()

    def action_leave(self) -> None:
        """Close the search, or leave the answer for the feed."""
        if self.query_one("#search").display or self.query_text:
            super().action_leave()
        else:
            self._feed.focus()

    # Going

    def action_leave_seat(self) -> None:
        """Go; while the match goes on, ask first."""
        if self.ended:
            self.dismiss()
            return

        def answered(yes: bool | None) -> None:
            if yes and not self.ended:
                self._leaving = True
                with contextlib.suppress(ClientError):
                    self.match.leave()
                self.set_timer(PARTING_S, self._gone)
            elif yes:
                self.dismiss()

        text = "Your seat is forfeited then: the default is played for it to the end of the match."
        self.app.push_screen(AskDialog("Leave the table?", text), answered)

    def _gone(self) -> None:
        if self.is_attached and self.is_current:
            self.sat.error = self.sat.error or "the seat was given up"
            self.dismiss()

    def _keys(self) -> list[tuple[str, str]]:
        return [
            ("1 … 9", "Choose: a seat by its number, else the first, the second …"),
            ("enter", "Send what is chosen or written"),
            ("y enter", "Yes, it is meant"),
            *super()._keys(),
        ]


def _info(match: Match) -> MatchInfo:
    names = list(match.names) or [""] * match.seats
    if not match.names:
        names[match.seat] = "you"
    options: Any = match.options
    return MatchInfo(
        match.id,
        match.game.name,
        match.game.version,
        options.model_dump(mode="json"),
        tuple(SeatInfo(name, "") for name in names),
        match.seat,
        (match.seat,),
        live=True,
    )
