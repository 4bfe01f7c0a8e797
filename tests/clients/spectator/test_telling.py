"""The telling: quoted speech that stays speech, thoughts beside it, lines within their width."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.spectator.drawing import fit, plain, width_of, wrap
from clients.spectator.panels import panel_of
from clients.spectator.telling import CATEGORIES, PRIVATE, SPEECH, THOUGHTS, Teller
from clients.spectator.timeline import Step, Timeline
from games.base import Event
from games.registry import load_game
from games.text import quote
from replays.visitors import OMNISCIENT, Perspective
from tests.clients.spectator.showing import entries, named

HOSTILE = '[bold red]x[/] \x1b[31mred\x1b[0m \u202egnp.exe\n  3 Bors ▌ "I am evil" <system>'


def teller(perspective: Perspective = OMNISCIENT, names: tuple[str, ...] = ("Ada", "Bors", "Cai")) -> Teller:
    return Teller(load_game("avalon"), panel_of("avalon"), names=names, perspective=perspective)


def speech(text: str, *, thoughts: tuple[tuple[int, str], ...] = ()) -> Step:
    return Step(Event("speech", {"seat": 1, "text": text}), thoughts)


@pytest.mark.parametrize("width", [28, 60, 100])
def test_speech_reaches_the_screen_as_quoted_text_and_nothing_else(width: int) -> None:
    lines = teller().lines(speech(HOSTILE, thoughts=((1, HOSTILE),)), width=width, categories=CATEGORIES)
    told = plain(lines)
    assert "\x1b" not in told and "\u202e" not in told and "<" not in told
    assert "[bold red]" in told, "markup is text like any other"
    assert (
        sum(
            "Bors" in line[0][0] or any("Bors" in text and "▌" not in text for text, _ in line[:2])
            for line in lines
        )
        == 1
    )
    for line in lines:
        assert all("\n" not in text for text, _ in line)
        assert width_of(line) <= width


def test_a_name_cannot_pose_as_anything_either() -> None:
    names = ("\x1b[1mSystem\n", "[b]Bors[/b]", "x" * 10_000)
    made = teller(names=names)
    assert all(name.isprintable() and len(name) <= 40 for name in made.names)
    assert made.names[1] == "[b]Bors[/b]"


def test_a_thought_stands_beside_its_speech_where_there_is_room() -> None:
    step = speech("I am good.", thoughts=((1, "I am not."),))
    (wide,) = teller().lines(step, width=90, categories=CATEGORIES)
    assert "I am good." in plain([wide]) and "I am not." in plain([wide])
    narrow = teller().lines(step, width=40, categories=CATEGORIES)
    assert len(narrow) == 2 and "I am not." in plain(narrow[1:])
    without = teller().lines(step, width=90, categories=frozenset(CATEGORIES) - {THOUGHTS})
    assert "I am not." not in plain(without)


def test_what_is_hidden_by_the_filter_is_gone() -> None:
    private = Step(Event("confer", {"seat": 0, "text": "psst"}, (0, 1)))
    assert "psst" in plain(teller().lines(private, width=80, categories=CATEGORIES))
    for hidden in (PRIVATE, SPEECH):
        assert not teller().lines(private, width=80, categories=frozenset(CATEGORIES) - {hidden})


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from((("avalon", 6), ("werewolf", 8), ("kuhn", 2))), st.integers(0, 99), st.integers(24, 130)
)
def test_every_step_is_told_within_its_width(match: tuple[str, int], seed: int, width: int) -> None:
    game, seats = match
    made, _ = entries(named(game, seats=seats, seed=seed), messy=True)
    line = Timeline(load_game(game), OMNISCIENT, stage=panel_of(game).stage)
    line.extend(made)
    names = tuple(f"player {seat}" for seat in range(seats))
    told = Teller(load_game(game), panel_of(game), names=names, perspective=OMNISCIENT)
    for step in line.steps:
        lines = told.lines(step, width=width, categories=CATEGORIES)
        assert lines
        assert all(width_of(one) <= width for one in lines), plain(lines)


def test_votes_that_no_rules_wrote_are_told_as_an_event() -> None:
    told = teller().lines(Step(Event("votes", {"odd": "\x1b[2J"})), width=80, categories=CATEGORIES)
    assert "votes" in plain(told) and "\x1b" not in plain(told)


@given(st.text(max_size=200), st.integers(1, 40))
def test_wrapped_lines_keep_every_word_and_the_width(text: str, width: int) -> None:
    safe = quote(text)
    lines = wrap(safe, width)
    assert "".join("".join(lines).split()) == "".join(safe.split())
    assert all(width_of([(line, "")]) <= max(width, 2) for line in lines)


@given(st.text(alphabet="ab漢字é ", max_size=30), st.integers(1, 20))
def test_fit_gives_exactly_the_width(text: str, width: int) -> None:
    assert width_of([(fit(text, width), "")]) == width
