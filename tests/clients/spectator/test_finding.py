"""Finding a place in a match."""

import pytest

from clients.spectator.finding import Finder, jump
from clients.spectator.panels import panel_of
from clients.spectator.telling import Teller
from clients.spectator.timeline import Timeline
from games.base import Event
from games.registry import load_game
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible
from tests.clients.spectator.showing import NAMES, entries, named


def made(perspective: Perspective, *, cut: int | None = None) -> tuple[Timeline, Finder]:
    """Return a match of Avalon, of its entries the first `cut`, and what finds words in it."""
    game, panel = load_game("avalon"), panel_of("avalon")
    timeline = Timeline(game, perspective, stage=panel.stage)
    found, _ = entries(named("avalon", seats=5, seed=5))
    timeline.extend(found[:cut])
    return timeline, Finder(timeline, Teller(game, panel, names=NAMES[:5], perspective=perspective))


def test_words_are_found_in_a_circle_both_ways() -> None:
    _, finder = made(PUBLIC)
    places = []
    here = -1
    while (found := finder.find("QUEST", here=here, by=1)) is not None and found not in places:
        places.append(found)
        here = found
    assert len(places) > 1 and places == sorted(places)
    assert finder.find("quest", here=places[-1], by=1) == places[0]
    assert finder.find("quest", here=places[0], by=-1) == places[-1]
    assert finder.find("quest", here=places[1], by=-1) == places[0]
    assert finder.find("quest", here=places[1], by=1, include_here=True) == places[1]


def test_words_that_stand_nowhere_are_not_found() -> None:
    _, finder = made(PUBLIC)
    assert finder.find("no such words", here=-1, by=1) is None


def test_what_came_later_is_found_too() -> None:
    timeline, finder = made(PUBLIC, cut=10)
    before = len(timeline)
    finder.find("quest", here=-1, by=1)
    found, _ = entries(named("avalon", seats=5, seed=5))
    timeline.extend(found[10:])
    last = finder.find("quest", here=0, by=-1)
    assert last is not None and last >= before


def test_a_jump_goes_to_an_event_or_a_ply() -> None:
    timeline, _ = made(OMNISCIENT)
    question, read = jump(timeline)
    assert timeline.plies is not None and f"0 to {timeline.plies}" in question
    assert read("e1") == 1 and read(f"E{len(timeline)}") == len(timeline)
    assert read(str(timeline.plies)) == timeline.step_of_ply(timeline.plies)
    for wrong in ("", "e", "e0", f"e{len(timeline) + 1}", str(timeline.plies + 1), "-1", "\u0663"):
        with pytest.raises(ValueError, match="got"):
            read(wrong)


def test_who_does_not_know_the_plies_jumps_to_events() -> None:
    game = load_game("avalon")
    timeline = Timeline(game, PUBLIC, stage=panel_of("avalon").stage)
    found, _ = entries(named("avalon", seats=5, seed=5))
    timeline.extend(entry for entry in found if isinstance(entry, Event) and visible(entry, PUBLIC))
    question, read = jump(timeline)
    assert "ply" not in question
    assert read("2") == read("e2") == 2
