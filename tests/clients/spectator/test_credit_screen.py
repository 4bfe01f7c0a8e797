"""Credit on a finished match: the panel, the marks under the timeline, and data that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from clients.errors import BadCreditSheet
from clients.spectator.app import SpectatorApp
from clients.spectator.credit import CreditSheet, draw_credit
from clients.spectator.drawing import plain, width_of
from clients.spectator.screens.credit import CreditScreen
from clients.spectator.source import RecordSource
from clients.spectator.widgets.credit import CreditPanel
from clients.spectator.widgets.scrubber import Scrubber
from games.referee import Input
from replays.reader import read_record
from replays.visitors import Perspective
from tests.clients.spectator.showing import NAMES, SIZE, opened, screen_text, write

LABELS = ("good", None, "bad", "good")


def document(path: Path, team: str) -> dict[str, Any]:
    """Return credit of a team as `arena credit --json` prints it: a hundredth for each decision."""
    record = read_record(path)
    assert record.footer is not None
    outcome = record.footer.outcome
    seats = [seat for seat, name in enumerate(outcome.teams) if name == team]
    plies = {(entry.ply, entry.seat) for entry in record.entries if isinstance(entry, Input)}
    steps = [
        {
            "ply": ply,
            "seat": seat,
            "credit": 0.01 if seat % 2 else -0.01,
            "label": LABELS[(ply + seat) % 4],
            "low": None,
            "high": None,
        }
        for ply, seat in sorted(plies)
        if seat in seats
    ]
    rows = [
        {
            "seat": seat,
            "player": record.header.seats[seat].name,
            "role": outcome.roles[seat],
            "credit": sum(step["credit"] for step in steps if step["seat"] == seat),
            "low": -0.5,
            "high": 0.5,
        }
        for seat in seats
    ]
    result = outcome.returns[seats[0]]
    return {"team": team, "result": result, "method": "adca", "seats": rows, "steps": steps}


def sheet_of(path: Path, *teams: str) -> CreditSheet:
    players = [seat.name for seat in read_record(path).header.seats]
    return CreditSheet.from_data([document(path, team) for team in teams], players=players)


def crediting(
    path: Path, *teams: str, perspective: Perspective = "all", ply: int | None = None
) -> SpectatorApp:
    sheet = sheet_of(path, *teams)
    source = RecordSource(path, perspective=perspective, poll_s=0.01)
    return SpectatorApp({"match": lambda: CreditScreen(source, sheet, ply=ply)})


@pytest.fixture
def avalon(tmp_path: Path) -> Path:
    return write(tmp_path, "avalon", seats=5, seed=3)


@pytest.mark.asyncio
async def test_the_panel_sums_up_what_was_decided_so_far(avalon: Path) -> None:
    app = crediting(avalon, "good", "evil")
    sheet = sheet_of(avalon, "good", "evil")
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert isinstance(screen, CreditScreen) and screen.timeline is not None
        await pilot.press("home")
        assert "Credit, adca good so far" in screen_text(pilot)
        assert all(value == 0 for team in sheet.teams for value in team.until(-1).values())
        assert "+0.00" in screen_text(pilot)
        screen.go(screen.timeline.step_of_ply(12))
        await pilot.pause()
        side = [line.split("│")[0] for line in screen_text(pilot).splitlines() if "┃" in line]
        for team in sheet.teams:
            for seat, value in team.until(11).items():
                (line,) = (line for line in side if f" {seat} {NAMES[seat]}" in line)
                assert f" {value:+.2f}" in line


@pytest.mark.asyncio
async def test_a_teams_result_is_told_at_the_end_alone(avalon: Path) -> None:
    async with crediting(avalon, "good").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        result = document(avalon, "good")["result"]
        await pilot.press("end", "left")
        assert f"good {result:+.2f}" not in screen_text(pilot)
        await pilot.press("right")
        assert f"Credit, adca good {result:+.2f}" in screen_text(pilot)


@pytest.mark.asyncio
async def test_a_mark_stands_at_each_seat_that_decided_in_this_ply(avalon: Path) -> None:
    async with crediting(avalon, "good", "evil").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert isinstance(screen, CreditScreen) and screen.timeline is not None
        sheet = screen.sheet
        votes = next(step for step in screen.timeline.steps if step.event.kind == "votes")
        screen.go(screen.timeline.steps.index(votes) + 1)
        await pilot.pause()
        assert votes.ply is not None and len(sheet.at(votes.ply)) == 5
        lines = plain(screen.query_one(CreditPanel).draw(38)).splitlines()
        glyphs = {"good": "▲", "bad": "▼", None: "·"}
        for step in sheet.at(votes.ply):
            assert any(line.startswith(f"{glyphs[step.label]} {step.seat} ") for line in lines)


@pytest.mark.asyncio
async def test_the_timeline_has_a_mark_per_ply_and_gives_nothing_away(avalon: Path) -> None:
    async with crediting(avalon, "good", "evil").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert screen.timeline is not None
        scrubber = screen.query_one(Scrubber)
        assert scrubber.size.height == 3

        def row() -> str:
            return "".join(text for text, _ in scrubber.draw(120)[1])

        await pilot.press("home")
        assert not row().strip()
        await pilot.press("end")
        whole = row()
        assert {"▲", "▼"} <= set(whole)
        screen.go(len(screen.timeline) // 2)
        await pilot.pause()
        half = row()
        assert half.rstrip() and not half[62:].strip()
        assert half[:55] == whole[:55]


@pytest.mark.asyncio
async def test_other_eyes_see_no_credit(avalon: Path) -> None:
    async with crediting(avalon, "good", perspective="all").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("end", "o")
        await pilot.pause()
        assert screen.info is not None and screen.info.perspective == "public"
        shown = screen_text(pilot)
        assert "Credit: a shows everything." in shown and "adca" not in shown
        assert screen.query_one(Scrubber).size.height == 2
        await pilot.press("a")
        await pilot.pause()
        assert "Credit, adca good" in screen_text(pilot)


@pytest.mark.asyncio
async def test_the_credit_is_hidden_and_shown_again(avalon: Path) -> None:
    async with crediting(avalon, "good").run_test(size=(120, 70)) as pilot:
        screen = await opened(pilot)
        await pilot.press("c")
        assert "Credit, adca" not in screen_text(pilot)
        assert screen.query_one(Scrubber).size.height == 2
        await pilot.press("c")
        assert "Credit, adca" in screen_text(pilot)
        await pilot.press("question_mark")
        assert "decided well in this ply" in screen_text(pilot)


@pytest.mark.asyncio
async def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
    assert "| `c` |" in page and "--credit" in page


@pytest.mark.parametrize("width", [12, 20, 38, 80])
def test_the_panel_keeps_to_its_width(avalon: Path, width: int) -> None:
    lines = draw_credit(sheet_of(avalon, "good", "evil"), names=NAMES[:5], ply=9, over=False, width=width)
    assert all(width_of(line) <= width for line in lines)


def test_a_share_that_is_next_to_nothing_of_the_result_looks_so(avalon: Path) -> None:
    told = document(avalon, "good")
    players = [seat.name for seat in read_record(avalon).header.seats]
    for place, credit in enumerate((0.001, -0.004, told["result"] / 2)):
        told["seats"][place]["credit"] = credit
    told["steps"] = []
    sheet = CreditSheet.from_data(told, players=players)
    lines = draw_credit(sheet, names=NAMES[:5], ply=99, over=True, width=60)
    _, none, small, large = plain(lines).splitlines()
    assert "█" not in none and "█" not in small, "both are ±0.00"
    assert "█" in large


def test_marks_are_of_labelled_plies(avalon: Path) -> None:
    sheet = sheet_of(avalon, "good", "evil")
    assert sheet.marks([]) == []
    assert sheet.at(10**6) == []


GOOD_DATA = {
    "team": "first",
    "result": 1.0,
    "method": "equal",
    "seats": [{"seat": 0, "player": "Ada", "role": "first", "credit": 1.0, "low": None, "high": None}],
    "steps": [{"ply": 0, "seat": 0, "credit": 1.0, "label": None}],
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**GOOD_DATA, **changes}


BAD: dict[str, tuple[Any, str]] = {
    "nothing": (None, "an object is needed"),
    "no team": ([], "name no team"),
    "text": ("adca", "an object is needed"),
    "no steps": ({key: value for key, value in GOOD_DATA.items() if key != "steps"}, "'steps' is missing"),
    "another match": (
        changed(seats=[{"seat": 0, "player": "Eve", "credit": 1.0}]),
        "of another match: seat 0 is 'Eve' there and 'Ada' here",
    ),
    "no such seat": (changed(seats=[{"seat": 7, "player": "Ada", "credit": 1.0}]), "the match has 2 seats"),
    "a step of nobody": (changed(steps=[{"ply": 0, "seat": 1, "credit": 1.0}]), "step"),
    "another label": (changed(steps=[{"ply": 0, "seat": 0, "credit": 1.0, "label": "fine"}]), "step"),
    "no number": (changed(result="all"), "number all"),
    "not finite": (changed(result=float("nan")), "number nan"),
    "twice": ([GOOD_DATA, GOOD_DATA], "credited twice"),
    "steps are a number": (changed(steps=3), "arena credit --json"),
}


@pytest.mark.parametrize("kind", BAD)
def test_data_that_are_no_credit_are_refused_in_one_line(kind: str) -> None:
    data, words = BAD[kind]
    with pytest.raises(BadCreditSheet) as caught:
        CreditSheet.from_data(data, players=["Ada", "Bors"])
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_what_was_printed_is_read_back() -> None:
    sheet = CreditSheet.from_data(json.loads(json.dumps(GOOD_DATA)), players=["Ada", "Bors"])
    assert sheet.teams[0].until(0) == {0: 1.0}


def test_the_credit_screen_looks_as_it_did(snap_compare: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "avalon", seats=5, seed=3)

    async def run(pilot: Any) -> None:
        await opened(pilot)
        await pilot.press(*("right_square_bracket",) * 4)
        await pilot.pause()

    assert snap_compare(crediting(path, "good", "evil"), terminal_size=(110, 36), run_before=run)


def test_the_credit_screen_looks_as_it_did_when_narrow(snap_compare: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "kuhn", seats=2, seed=3)

    async def run(pilot: Any) -> None:
        await opened(pilot)
        await pilot.press("end")
        await pilot.pause()

    assert snap_compare(crediting(path, "first"), terminal_size=(72, 24), run_before=run)
