"""The match screen as a person uses it: every key, what may be seen, and how little is drawn."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widgets import Input, SelectionList

from clients.spectator.app import SpectatorApp
from clients.spectator.pace import FIRST_SPEED, LONGEST_S, SPEEDS, STEP_S
from clients.spectator.screens.dialogs import FilterDialog, HelpScreen, JumpDialog
from clients.spectator.screens.match import MatchScreen
from clients.spectator.telling import SPEECH
from clients.spectator.timeline import SPACING
from clients.spectator.widgets.feed import Feed
from games.base import Event
from games.registry import load_game
from replays.reader import read_record
from replays.visitors import visible
from tests.clients.spectator.showing import (
    NAMES,
    SIZE,
    Clock,
    encode,
    entries,
    footer,
    long_match,
    named,
    opened,
    put,
    referee,
    screen_text,
    until,
    watching,
    write,
    write_entries,
)

pytestmark = pytest.mark.asyncio


@pytest.fixture
def avalon(tmp_path: Path) -> Path:
    return write(tmp_path, "avalon", seats=5, seed=1)


async def test_a_finished_match_opens_after_the_deal_and_steps_event_by_event(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        assert screen.timeline.stage_at(screen.position) == "Quest 1, proposal 1"
        start = screen.position
        await pilot.press("right", "right", "right", "left")
        assert screen.position == start + 2
        await pilot.press("home")
        assert screen.position == 0
        await pilot.press("left")
        assert screen.position == 0, "there is nothing before the start"
        await pilot.press("end", "right")
        assert screen.position == len(screen.timeline)
        assert "wins" in screen_text(pilot)


async def test_phases_are_stepped_with_brackets(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        titles = []
        for _ in range(3):
            await pilot.press("right_square_bracket")
            titles.append(screen.timeline.stage_at(screen.position))
        assert titles == [stage.title for stage in screen.timeline.stages[2:5]]
        await pilot.press("right", "left_square_bracket")
        assert screen.timeline.stage_at(screen.position) == titles[-1], "first to where this phase began"
        await pilot.press("left_square_bracket")
        assert screen.timeline.stage_at(screen.position) == titles[-2]


async def test_space_plays_and_pauses_and_the_end_stops_it(avalon: Path) -> None:
    clock = Clock()
    async with watching(avalon, clock=clock).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        start = screen.position
        await pilot.press(*["plus"] * len(SPEEDS))
        assert not screen.playing
        await pilot.press("space")
        assert screen.playing and "▶ 32×" in screen_text(pilot)
        clock.go_on(0.99 * STEP_S / SPEEDS[-1])
        assert screen.position == start, "each event stays for its time"
        clock.go_on(0.01 * STEP_S / SPEEDS[-1])
        assert screen.position == start + 1
        clock.go_on(3 * LONGEST_S / SPEEDS[-1])
        await pilot.press("space")
        here = screen.position
        assert not screen.playing and start + 4 <= here < len(screen.timeline)
        assert "‖ 32×" in screen_text(pilot)
        clock.go_on(LONGEST_S)
        assert screen.position == here, "what is paused stays"
        await pilot.press("space")
        clock.go_on(len(screen.timeline) * LONGEST_S)
        await pilot.pause()
        assert not screen.playing and screen.position == len(screen.timeline)
        assert "■ end" in screen_text(pilot)
        await pilot.press("space")
        assert screen.playing and screen.position == start, "from the end it plays anew"


async def test_a_match_is_played_back_by_the_wall_s_clock_where_none_is_given(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        await pilot.press(*["plus"] * len(SPEEDS), "space")
        await until(pilot, lambda: not screen.playing)
        assert screen.position == len(screen.timeline)


async def test_a_new_speed_holds_for_what_is_on_the_screen(avalon: Path) -> None:
    clock = Clock()
    async with watching(avalon, clock=clock).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        start = screen.position
        await pilot.press("space", "plus")
        assert "▶ 2×" in screen_text(pilot)
        clock.go_on(STEP_S / 2)
        assert screen.position == start + 1
        await pilot.press("right")
        assert not screen.playing
        clock.go_on(LONGEST_S)
        assert screen.position == start + 2, "who steps has taken over"


async def test_plus_and_minus_change_the_speed_within_bounds(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        await opened(pilot)
        await pilot.press("plus")
        assert f"{SPEEDS[FIRST_SPEED + 1]:g}×" in screen_text(pilot)
        await pilot.press(*["minus"] * 20)
        assert f"{SPEEDS[0]:g}×" in screen_text(pilot)


async def test_a_jump_goes_to_a_ply_or_an_event_and_says_what_is_allowed(avalon: Path) -> None:
    async with watching(avalon, "all").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        await pilot.press("g", *"12", "enter")
        assert screen.position == screen.timeline.step_of_ply(12)
        await pilot.press("g", *"e20", "enter")
        assert screen.position == 20
        await pilot.press("g", *"99999", "enter")
        assert isinstance(pilot.app.screen, JumpDialog)
        assert "this match has plies 0 to" in screen_text(pilot)
        await pilot.press("escape")
        assert screen.position == 20


async def test_without_plies_a_jump_goes_to_an_event(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("g", *"7", "enter")
        assert screen.position == 7
        await pilot.press("g", *"x", "enter")
        assert "a number is needed" in screen_text(pilot)


async def test_perspectives_keep_the_moment(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE, notifications=True) as pilot:
        screen = await opened(pilot)
        for _ in range(4):
            await pilot.press("right_square_bracket")
        assert screen.timeline is not None
        here = (screen.position, screen.timeline.moment(screen.position))
        for key, eyes in (("a", "all"), ("3", 3), ("o", "public")):
            await pilot.press(key)
            await until(pilot, lambda eyes=eyes: screen.info is not None and screen.info.perspective == eyes)
            moment = screen.timeline.moment(screen.position)
            assert moment.public == here[1].public
        assert (screen.position, moment) == here
        seen = set()
        for _ in range(7):
            before = screen.info
            await pilot.press("p")
            await until(pilot, lambda before=before: screen.info is not before)
            assert screen.info is not None
            seen.add(screen.info.perspective)
        assert seen == {"public", "all", 0, 1, 2, 3, 4}
        await pilot.press("9")
        await pilot.pause()
        assert "seats 0 to 4" in screen_text(pilot)


@pytest.mark.parametrize("game, seats, seed", [("avalon", 7, 3), ("werewolf", 9, 2)])
async def test_nothing_hidden_stands_on_the_screen_of_who_may_not_see_it(
    tmp_path: Path, game: str, seats: int, seed: int
) -> None:
    path = write(tmp_path, game, seats=seats, seed=seed)
    record = read_record(path)
    assert record.footer is not None
    roles = record.footer.outcome.roles
    for perspective in ("public", seats - 1):
        async with watching(path, perspective).run_test(size=SIZE) as pilot:
            screen = await opened(pilot)
            assert screen.timeline is not None
            for _ in range(len(screen.timeline)):
                if screen.timeline.stage_at(screen.position) == "The end":
                    break
                view = screen.timeline.view_at(screen.position)
                for seat, line in seat_lines(screen_text(pilot)):
                    named_there = [role for role in load_game(game).role_names if role in line.split()]
                    allowed = [view.roles[seat]] if seat in view.roles else []
                    assert named_there == allowed or set(named_there) <= {"evil"}, line
                    if named_there:
                        assert named_there == [roles[seat]]
                await pilot.press("right_square_bracket")
            assert screen.timeline.stage_at(screen.position) == "The end"


def seat_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (seat, line of the table) from what stands on the screen."""
    for line in text.splitlines():
        left = line.split("│")[0]
        found = re.match(r"[ ▶] *(\d+) (\w+) ", left)
        if found and found[2] == NAMES[int(found[1])]:
            yield int(found[1]), left


async def test_thoughts_and_faults_show_to_the_omniscient_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "werewolf", seats=7, seed=9, messy=True)
    for perspective, expected in (("all", True), ("public", False)):
        async with watching(path, perspective).run_test(size=SIZE) as pilot:
            await opened(pilot)
            await pilot.press("end")
            text = screen_text(pilot)
            assert ("↻" in text and "!" in text) == expected
            await pilot.press("slash", *"thinks" if expected else "seat", "enter")
            await pilot.press("slash", *"strange", "enter")
            assert ("«strange»" in screen_text(pilot)) == expected


async def test_scrolling_up_stops_following_and_says_so(avalon: Path) -> None:
    async with watching(avalon).run_test(size=(100, 24)) as pilot:
        screen = await opened(pilot)
        feed = screen.query_one(Feed)
        await pilot.press("end", "pageup")
        assert not feed.following and "f follows" in screen_text(pilot)
        await pilot.press("f")
        assert feed.following and "f follows" not in screen_text(pilot)
        await pilot.press("up")
        assert not feed.following
        await pilot.press("down")
        assert feed.following, "the end is reached again"
        await pilot.press("pageup", "pagedown", "pagedown")
        assert feed.following


async def test_a_match_that_goes_on_is_followed_until_the_reader_steps_back(tmp_path: Path) -> None:
    head = named("werewolf", seats=7, seed=4)
    made, end = entries(head)
    path = write_entries(tmp_path / "w.arena", head, made[: len(made) // 4])
    async with watching(path).run_test(size=(100, 24)) as pilot:
        screen = await opened(pilot)
        timeline = screen.timeline
        assert timeline is not None and screen.position == len(timeline)
        assert "● following" in screen_text(pilot) and "no end yet" in screen_text(pilot)
        before = len(timeline)
        write_entries(path, head, made[: len(made) // 2])
        await until(pilot, lambda: len(timeline) > before)
        assert screen.position == len(timeline), "followed"
        await pilot.press("left", "left")
        assert "2 events behind" in screen_text(pilot)
        here = screen.position
        write_entries(path, head, made[: len(made) * 3 // 4])
        await until(pilot, lambda: len(timeline) > here + 2)
        assert screen.position == here
        await pilot.press("f")
        assert screen.position == len(timeline)
        put(path, encode(head, made, end))
        await until(pilot, lambda: screen.over)
        assert screen.position == len(timeline)
        assert "no end yet" not in screen_text(pilot) and "■ end" in screen_text(pilot)


async def test_search_goes_from_place_to_place(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE, notifications=True) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        await pilot.press("slash")
        assert screen.query_one("#search", Input).has_focus
        await pilot.press(*"approved", "enter")
        votes = [at + 1 for at, step in enumerate(screen.timeline.steps) if step.event.kind == "votes"]
        assert screen.position == votes[0]
        await pilot.press("n")
        assert screen.position == votes[1]
        await pilot.press("N")
        assert screen.position == votes[0]
        await pilot.press("N")
        assert screen.position == votes[-1], "round the start to the last"
        await pilot.press("slash", *"[bold]nowhere", "enter")
        await pilot.pause()
        assert "'[bold]nowhere' stands nowhere here" in screen_text(pilot)
        await pilot.press("escape")
        assert screen.query_text == ""


async def test_the_filter_hides_categories_and_says_which(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("right_square_bracket")
        assert "▌" in screen_text(pilot)
        await pilot.press("v")
        assert isinstance(pilot.app.screen, FilterDialog)
        assert pilot.app.screen.query_one(SelectionList).highlighted == 0
        await pilot.press("space", "enter")
        assert SPEECH not in screen.categories
        assert "▌" not in screen_text(pilot) and "Hidden: what is said" in screen_text(pilot)
        await pilot.press("v", "space", "escape")
        assert SPEECH not in screen.categories, "escape leaves it as it was"


async def test_help_lists_every_key_and_the_signs_of_the_game(avalon: Path) -> None:
    async with watching(avalon).run_test(size=(100, 90)) as pilot:
        screen = await opened(pilot)
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        text = screen_text(pilot)
        for binding in screen.BINDINGS:
            assert not binding.tooltip or binding.tooltip in text
        assert "merlin" in text and "was asked again" in text
        await pilot.press("question_mark")
        assert pilot.app.screen is screen


async def test_the_palette_offers_every_action(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        titles = {command.title for command in pilot.app.get_system_commands(screen)}
        actions = {binding.description for binding in screen.BINDINGS if binding.tooltip}
        assert actions <= titles
        assert "See as seat 4, Elaine" in titles and "Show only: votes" in titles and "Theme" in titles
        for command in screen.commands():
            if command.title == "Show only: votes":
                command.callback()
        await pilot.pause()
        assert "Hidden:" in screen_text(pilot)


async def test_a_click_on_the_scrubber_goes_there(avalon: Path) -> None:
    async with watching(avalon).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        await pilot.click("#scrubber", offset=(SIZE[0] - 2, 0))
        assert screen.position == len(screen.timeline)
        await pilot.click("#scrubber", offset=(1, 0))
        assert screen.position == 0
        await pilot.click("#scrubber", offset=(SIZE[0] // 2, 0))
        assert abs(screen.position - len(screen.timeline) / 2) <= 1


async def test_ply_says_where_to_begin(avalon: Path) -> None:
    async with watching(avalon, "all", ply=9).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None and screen.position == screen.timeline.step_of_ply(9)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20)])
async def test_every_part_is_readable_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    path = write(tmp_path, "werewolf", seats=12, seed=3)
    async with watching(path, "all").run_test(size=size) as pilot:
        screen = await opened(pilot)
        await pilot.press("right_square_bracket")
        feed = screen.query_one(Feed)
        assert feed.size.height >= 7 and feed.size.width >= 40
        text = screen_text(pilot)
        assert all(f"{seat}" in text for seat in range(12))
        assert "Day 1" in text and "of 12 alive" in text


async def test_a_long_match_is_drawn_lazily(tmp_path: Path) -> None:
    head, made = long_match(10_000)
    events = sum(isinstance(entry, Event) for entry in made)
    assert events >= 10_000
    path = write_entries(tmp_path / "long.arena", head, made)
    async with watching(path, "all").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        timeline, feed = screen.timeline, screen.query_one(Feed)
        assert timeline is not None and len(timeline) == events == screen.position
        assert feed.virtual_size.height > events
        for key in ("home", "end", "left", "left_square_bracket", "right", "pageup"):
            drawn, folds = feed.strips_made, timeline.folds
            await pilot.press(key)
            await pilot.pause()
            assert feed.strips_made - drawn <= 6 * SIZE[1], f"{key}: only what is on the screen is drawn"
            assert timeline.folds - folds <= 2 * SPACING, f"{key}: no view is folded from the start"


async def test_a_long_match_opens_at_its_start_without_measuring_the_rest(tmp_path: Path) -> None:
    head, made = long_match(2000)
    table = referee(head)
    for entry in made:
        if not isinstance(entry, Event):
            table.feed(entry)
    while turns := table.turns():
        for seat in turns:
            made += table.forfeit(seat)
    path = tmp_path / "long.arena"
    path.write_bytes(encode(head, made, footer(table)))
    async with watching(path).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        assert screen.query_one(Feed).lines_measured == screen.position < len(screen.timeline) // 100


async def test_hostile_names_and_speech_are_inert(tmp_path: Path) -> None:
    hostile = "[@click=app.quit]go[/] \x1b[2J\u202e"
    made = [
        Event("start", {"seats": 5, "mix": {"werewolf": 1, "villager": 4}}),
        Event("night", {"day": 1}),
        Event("dawn", {"day": 1, "dead": []}),
        Event("speech", {"seat": 1, "text": hostile}),
        Event("no such kind", {"text": hostile}),
        Event("vote", {"votes": "nonsense", "out": hostile}),
    ]
    head = named("werewolf", seats=5, seed=1)
    seats = tuple(type(seat)(hostile, "random", "1") for seat in head.seats)
    path = write_entries(
        tmp_path / "h.arena", type(head)(**{**fields(head), "seats": seats, "match": hostile}), made
    )
    async with watching(path).run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        text = screen_text(pilot)
        assert "\x1b" not in text and "\u202e" not in text
        assert "[@click=app.quit]go[/]" in text
        assert screen.position == 6
        await pilot.press("question_mark", "escape", "p", "slash", *"go", "enter")
        assert pilot.app.is_running


def fields(head: object) -> dict[str, object]:
    return {name: getattr(head, name) for name in head.__dataclass_fields__}  # type: ignore[attr-defined]


async def test_what_cannot_be_opened_is_said_on_the_screen(tmp_path: Path) -> None:
    app: SpectatorApp = watching(tmp_path / "none.arena")
    async with app.run_test(size=SIZE) as pilot:
        await until(
            pilot, lambda: isinstance(app.screen, MatchScreen) and "cannot read" in screen_text(pilot)
        )


async def test_the_public_screen_counts_no_hidden_events(tmp_path: Path) -> None:
    path = write(tmp_path, "werewolf", seats=9, seed=2, messy=True)
    public = sum(visible(event, "public") for event in read_record(path).events())
    async with watching(path).run_test(size=SIZE) as pilot:
        await opened(pilot)
        await pilot.press("end")
        assert f"event {public}/{public}" in screen_text(pilot)
        assert "ply" not in screen_text(pilot)


async def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
    for binding in MatchScreen.BINDINGS:
        assert isinstance(binding, Binding)
        key = binding.key_display or binding.key
        assert f"`{key}`" in page or key in "0123456789", key
