"""The match: table, board, feed and scrubber; played live or back, seen through anybody's eyes."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from clients.spectator.finding import Finder, jump
from clients.spectator.guide import filter_commands, hidden, key_commands, keys, signs
from clients.spectator.pace import Alarm, Later, Pace
from clients.spectator.panels import panel_of
from clients.spectator.panels.base import GamePanel, SeatLook
from clients.spectator.screens.dialogs import FilterDialog, HelpScreen, JumpDialog
from clients.spectator.source import Batch, EventSource, MatchInfo
from clients.spectator.telling import CATEGORIES, CATEGORY_TITLES, Teller
from clients.spectator.timeline import Moment, Timeline
from clients.spectator.widgets.feed import Feed
from clients.spectator.widgets.heading import TitleBar
from clients.spectator.widgets.scrubber import Scrubber, Ticks
from clients.spectator.widgets.table import Board, SeatTable
from games.errors import ArenaError
from games.registry import load_game
from games.text import clean_name
from replays.export import who
from replays.visitors import Perspective

WIDE, ROOMY, SHORT = 80, 110, 30
"""Columns from which on table and feed stand side by side, and with room; rows below which a narrow screen is
kept brief."""


class MatchScreen(Screen[None]):
    """One match from an `EventSource`.

    Args:
        source: where it comes from; closed when the screen goes.
        ply: for a finished match, where to begin; None begins after the deal.
        later: by which clock it is played back; None is the wall's.
    """

    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (WIDE, "-medium"),
        (ROOMY, "-wide"),
    ]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "Play", tooltip="Play or pause"),
        Binding("left", "step(-1)", "Back", key_display="←", tooltip="One event back"),
        Binding("right", "step(1)", "Step", key_display="→", tooltip="One event on"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys and signs"),
        hidden("left_square_bracket", "phase(-1)", "Phase back", "To the phase before", key_display="["),
        Binding("right_square_bracket", "phase(1)", "Phase", key_display="]", tooltip="To the next phase"),
        hidden("plus,equals_sign", "speed(1)", "Faster", "Play twice as fast", key_display="+"),
        hidden("minus", "speed(-1)", "Slower", "Play half as fast", key_display="-"),
        hidden("home", "start", "To the start", "Before the first event"),
        hidden("end", "end", "To the end", "After the last event"),
        hidden("g", "jump", "Jump", "Jump to a ply or an event"),
        Binding("p", "perspective", "Eyes", tooltip="Look through the next pair of eyes, at the same moment"),
        hidden("a", "look('all')", "See everything", "The omniscient view, thoughts included"),
        hidden("o", "look('public')", "See what is public", "What everybody saw"),
        *(Binding(str(n), f"look({n})", f"Seat {n}", show=False, system=True) for n in range(10)),
        hidden("f", "follow", "Follow", "Go to the newest event and stay there"),
        Binding("slash", "search", "Find", key_display="/", tooltip="Find words in the match"),
        hidden("n", "hit(1)", "Next hit", "To the next place where the words stand"),
        hidden("N", "hit(-1)", "Hit before", "To the place before"),
        hidden("v", "filter", "Filter", "Choose what the feed shows"),
        hidden("escape", "leave", "Back to the list", "Close the search, or go back"),
    ]

    def __init__(self, source: EventSource, *, ply: int | None = None, later: Later | None = None) -> None:
        super().__init__()
        self.source = source
        self._call_later: Later = self.set_timer if later is None else later
        self.info: MatchInfo | None = None
        self.timeline: Timeline | None = None
        self.position = 0
        """How many steps are shown."""
        self.playing = False
        self.over = False
        self.query_text = ""
        self.categories: Collection[str] = frozenset(CATEGORIES)
        self._panel: GamePanel = panel_of("")
        self._names: list[str] = []
        self._pace = Pace()
        self._first_ply = ply
        self._opening = True
        self._pinned = False
        self._seek: Moment | None = None
        self._anchor = Moment(0, 0)
        self._finder: Finder | None = None
        self._ticks = Ticks(self._panel)
        self._notice = ""
        self._alarm: Alarm | None = None

    def compose(self) -> ComposeResult:
        yield TitleBar()
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield SeatTable(id="seats")
                yield Board(id="board")
            yield Feed(id="feed")
        yield Static("", id="banner", markup=False)
        yield Input(placeholder="words to find, enter to go there", id="search")
        yield Scrubber(id="scrubber")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read the source."""
        self._title_bar.left = clean_name(self.source.name)
        self.query_one("#search").display = False
        self._feed.focus()
        self.run_worker(self._read(), name="source", exit_on_error=True)

    async def on_unmount(self) -> None:
        """Let go of the source."""
        await self.source.close()

    def on_resize(self) -> None:
        """Fit the parts to the new size."""
        self._show()

    @property
    def _feed(self) -> Feed:
        return self.query_one("#feed", Feed)

    @property
    def _title_bar(self) -> TitleBar:
        return self.query_one(TitleBar)

    async def _read(self) -> None:
        try:
            async for batch in self.source.batches():
                self.take(batch)
        except ArenaError as error:
            self._notice = str(error)
            self._show()

    def take(self, batch: Batch) -> None:
        """Take what the source tells."""
        if batch.info is not None:
            self._begin(batch.info)
        timeline = self.timeline
        if timeline is None:
            return
        if batch.notice is not None:
            self._notice = batch.notice
        timeline.extend(batch.entries)
        self.over = batch.over
        if self._opening:
            self._open(timeline)
        elif self._seek is not None:
            self.position = timeline.step_of(self._seek)
            if self.over or timeline.moment(len(timeline)).public >= self._seek.public:
                self._seek = None
        if self._pinned:
            self.position = len(timeline)
            self._anchor = timeline.moment(self.position)
        self.query_one(SeatTable).wind({} if batch.over else batch.clocks)
        self._show()

    def _begin(self, info: MatchInfo) -> None:
        again = self.info is not None
        game = load_game(info.game)
        self.info = info
        self._panel = panel_of(info.game)
        self.timeline = Timeline(game, info.perspective, stage=self._panel.stage, closing=self._panel.closing)
        self._names = [clean_name(seat.name) for seat in info.seats]
        teller = Teller(game, self._panel, names=self._names, perspective=info.perspective)
        self._feed.begin(self.timeline, teller)
        self._finder = Finder(self.timeline, teller)
        self._ticks = Ticks(self._panel)
        if again:
            self._seek = self._anchor
        table = self.query_one(SeatTable)
        table.panel, table.names = self._panel, self._names
        self.query_one(Board).panel = self._panel
        match = f" · {clean_name(info.match)}" if info.match else ""
        self._title_bar.left = f"{game.title}{match}"
        if info.rules != game.version:
            self.notify(
                f"Played under rules {clean_name(info.rules)}; {game.version} are installed.", markup=False
            )

    def _open(self, timeline: Timeline) -> None:
        """Find where to begin: a match that goes on at its newest event, one that has ended after the deal."""
        assert self.info is not None
        if not self.info.ended:
            self._pinned = True
        elif self._first_ply is not None:
            self._opening = not self.over
            self.position = timeline.step_of_ply(self._first_ply)
        else:
            self._opening = not self.over and len(timeline.stages) < 2
            self.position = timeline.next_stage(1)
        self._opening = self._opening and not self._pinned
        self._anchor = timeline.moment(self.position)

    # What is shown

    def _show(self, *, follow: bool = False) -> None:
        """Bring every part to the position."""
        timeline, info = self.timeline, self.info
        if not self.is_mounted:
            return
        self._show_banner()
        if timeline is None or info is None:
            return
        view = timeline.view_at(self.position)
        table, board = self.query_one(SeatTable), self.query_one(Board)
        brief = self.size.width < WIDE and self.size.height < SHORT
        table.brief = self.size.width < WIDE
        table.newest = self.position == len(timeline)
        board.brief = brief
        try:
            table.looks = self._panel.seats(view, len(info.seats))
        except Exception:
            # A view folded from events that no rules emitted: the seats stay, without what they would know.
            table.looks = [SeatLook() for _ in info.seats]
        table.faults = timeline.faults_at(self.position)
        table.speaking = self._speaking(timeline)
        board.view = view
        table.redraw()
        board.redraw()
        self._feed.show(self.position, follow=follow)
        self._title_bar.show_eyes(info.perspective, self._names)
        self._show_scrubber(timeline)
        self._show_banner()

    def _speaking(self, timeline: Timeline) -> int | None:
        if not self.position:
            return None
        event = timeline.steps[self.position - 1].event
        seat = event.data.get("seat") if event.kind in self._panel.speech else None
        return seat if isinstance(seat, int) else None

    def _show_scrubber(self, timeline: Timeline) -> None:
        place = f"event {self.position}/{len(timeline)}"
        if timeline.plies is not None and self.position:
            ply = timeline.steps[self.position - 1].ply
            place = f"ply {'–' if ply is None else ply} · {place}"
        self.query_one(Scrubber).show(
            at=self.position,
            whole=len(timeline),
            ticks=self._ticks.of(timeline.steps),
            state=self._state(timeline),
            stage=timeline.stage_at(self.position) or "The deal",
            note=self._lag(timeline),
            place=place,
        )

    def _state(self, timeline: Timeline) -> tuple[str, str]:
        if self._pinned and not self.over:
            return ("● LIVE" if self.info is not None and self.info.live else "● following"), "error"
        if self.playing:
            return f"▶ {self._pace.speed:g}×", "accent"
        if self.position == len(timeline) and self.over:
            return "■ end", "dim"
        return f"‖ {self._pace.speed:g}×", "dim"

    def _lag(self, timeline: Timeline) -> str:
        """Return how far the reader is behind what there is, in words; empty where everything is followed."""
        feed = self._feed
        if not feed.following:
            new = f", {feed.unseen} new below" if feed.unseen else ""
            return f"scrolled up{new} · f follows"
        if not self.over and not self._pinned:
            behind = len(timeline) - self.position
            return f"{behind} event{'' if behind == 1 else 's'} behind · f follows"
        return ""

    def _show_banner(self) -> None:
        notes = [self._notice] if self._notice else []
        if self.categories != frozenset(CATEGORIES):
            hidden = [CATEGORY_TITLES[name].lower() for name in CATEGORIES if name not in self.categories]
            notes.append(f"Hidden: {', '.join(hidden)} · v chooses")
        banner = self.query_one("#banner", Static)
        banner.display = bool(notes)
        banner.update("\n".join(notes))

    # Moving

    def go(self, position: int) -> None:
        """Show the first `position` steps."""
        timeline = self.timeline
        if timeline is None:
            return
        self.position = min(max(position, 0), len(timeline))
        self._pinned = not self.over and self.position == len(timeline)
        self._anchor = timeline.moment(self.position)
        self._opening, self._seek = False, None
        self._show(follow=True)

    def action_step(self, by: int) -> None:
        """Go by events."""
        self._pause()
        self.go(self.position + by)

    def action_phase(self, by: int) -> None:
        """Go by phases."""
        if self.timeline is not None:
            self._pause()
            self.go((self.timeline.next_stage if by > 0 else self.timeline.last_stage)(self.position))

    def action_start(self) -> None:
        """Go before the first event."""
        self._pause()
        self.go(0)

    def action_end(self) -> None:
        """Go after the last event."""
        self._pause()
        if self.timeline is not None:
            self.go(len(self.timeline))

    def action_follow(self) -> None:
        """Follow again: a live match to its newest event, the feed to its end."""
        if self.timeline is not None and not self.over:
            self.go(len(self.timeline))
        self._feed.follow()

    def action_jump(self) -> None:
        """Ask where to, and go there."""
        timeline = self.timeline
        if timeline is None:
            return
        question, read = jump(timeline)
        self._pause()
        self.app.push_screen(JumpDialog(question, read), self._jumped)

    def _jumped(self, step: int | None) -> None:
        if step is not None:
            self.go(step)

    def on_scrubber_sought(self, message: Scrubber.Sought) -> None:
        """Go where the scrubber was clicked."""
        if self.timeline is not None:
            self._pause()
            self.go(round(message.share * len(self.timeline)))

    def on_feed_followed(self) -> None:
        """Say whether the feed is followed."""
        if self.timeline is not None:
            self._show_scrubber(self.timeline)

    # Playing

    def action_play(self) -> None:
        """Play, or pause; from the end play anew."""
        timeline = self.timeline
        if timeline is None:
            return
        if self.playing:
            self._pause()
            self._show()
            return
        if self.position == len(timeline) and self.over:
            self.go(timeline.next_stage(1))
        self.playing = True
        self._feed.follow()
        self._show()
        self._later(timeline)

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self._pace.shift(by)
        if self.playing and self.timeline is not None:
            self._later(self.timeline)
        self._show()

    def _pause(self) -> None:
        self.playing = False
        if self._alarm is not None:
            self._alarm.stop()
            self._alarm = None

    def _later(self, timeline: Timeline) -> None:
        if self._alarm is not None:
            self._alarm.stop()
        event = timeline.steps[self.position - 1].event if self.position else None
        self._alarm = self._call_later(self._pace.stay_s(event, speech=self._panel.speech), self._play_on)

    def _play_on(self) -> None:
        timeline = self.timeline
        if timeline is None or not self.playing:
            return
        self.position = min(self.position + 1, len(timeline))
        self._anchor = timeline.moment(self.position)
        if self.position == len(timeline):
            self._pinned = not self.over
            self._pause()
        else:
            self._later(timeline)
        self._show()

    # Looking

    def action_perspective(self) -> None:
        """Look through the next pair of eyes."""
        if self.info is not None:
            allowed = self.info.allowed
            here = allowed.index(self.info.perspective) if self.info.perspective in allowed else -1
            self._look(allowed[(here + 1) % len(allowed)])

    def action_look(self, perspective: Perspective) -> None:
        """Look through these eyes."""
        self._look(perspective)

    def _look(self, perspective: Perspective) -> None:
        info = self.info
        if info is None or perspective == info.perspective:
            return
        if isinstance(perspective, int) and perspective >= len(info.seats):
            self.notify(f"This match has seats 0 to {len(info.seats) - 1}.", severity="warning")
        elif perspective not in info.allowed:
            allowed = ", ".join(who(one) for one in info.allowed)
            self.notify(f"Not open to you; you may look as {allowed}.", severity="warning", markup=False)
        else:
            self.run_worker(self.source.switch(perspective), name="switch")

    # Finding

    def action_search(self) -> None:
        """Ask for words."""
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the first place, from here on, where the words stand."""
        self.query_text = event.value.strip()
        self._close_search()
        self._feed.mark(self.query_text)
        if self.query_text and not self._hit(1, include_here=True):
            self.notify(f"{self.query_text[:40]!r} stands nowhere here.", severity="warning", markup=False)

    def action_hit(self, by: int) -> None:
        """Go to the next place, or the one before, where the words stand."""
        if not self.query_text:
            self.action_search()
        elif not self._hit(by):
            self.notify(f"{self.query_text[:40]!r} stands nowhere here.", severity="warning", markup=False)

    def _hit(self, by: int, *, include_here: bool = False) -> bool:
        if self._finder is None:
            return False
        step = self._finder.find(self.query_text, here=self.position - 1, by=by, include_here=include_here)
        if step is None:
            return False
        self._pause()
        self.go(step + 1)
        return True

    def _close_search(self) -> None:
        self.query_one("#search").display = False
        self._feed.focus()

    def action_filter(self) -> None:
        """Ask what the feed shows."""
        self.app.push_screen(FilterDialog(self.categories), self.show_only)

    def show_only(self, categories: Collection[str] | None) -> None:
        """Show these categories in the feed; None leaves it as it is."""
        if categories is not None:
            self.categories = frozenset(categories)
            self._feed.filter(self.categories)
            self._show_banner()

    def action_help(self) -> None:
        """Show the keys and signs."""
        self.app.push_screen(HelpScreen("Keys", self._keys(), signs(self._panel)))

    def _keys(self) -> list[tuple[str, str]]:
        return keys(self.BINDINGS)

    def action_leave(self) -> None:
        """Close the search; without one go back to the list, where there is one."""
        if self.query_one("#search").display:
            self._close_search()
        elif self.query_text:
            self.query_text = ""
            self._feed.mark("")
        elif len(self.app.screen_stack) > 1:
            self.dismiss()

    def commands(self) -> Iterator[SystemCommand]:
        """Yield what the command palette offers here."""
        yield from key_commands(self.BINDINGS, run=self.run_action)
        for perspective in self.info.allowed if self.info is not None else ():
            if isinstance(perspective, int):
                title = f"See as seat {perspective}, {self._names[perspective]}"
                yield SystemCommand(title, "What that seat saw", partial(self._look, perspective))
        yield from filter_commands(self.show_only)
