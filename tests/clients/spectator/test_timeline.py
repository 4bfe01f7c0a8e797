"""The timeline: any view as if folded from the start, moments that mean the same to everybody."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.spectator.panels import panel_of
from clients.spectator.timeline import SPACING, Timeline
from games.base import Event
from games.referee import Entry, Input
from games.registry import load_game
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible
from tests.clients.spectator.showing import entries, long_match, named

MATCHES = (("avalon", 7), ("werewolf", 9), ("kuhn", 2))
PERSPECTIVES: tuple[Perspective, ...] = (PUBLIC, OMNISCIENT, 0, 1)


def stream(made: list[Entry], perspective: Perspective) -> list[Entry]:
    return [
        entry
        for entry in made
        if (perspective == OMNISCIENT if isinstance(entry, Input) else visible(entry, perspective))
    ]


def timeline(game: str, made: list[Entry], perspective: Perspective) -> Timeline:
    line = Timeline(load_game(game), perspective, stage=panel_of(game).stage)
    line.extend(stream(made, perspective))
    return line


def folded(game: str, line: Timeline, step: int) -> Any:
    seat = line.perspective if isinstance(line.perspective, int) else None
    view = load_game(game).view(seat)
    for one in line.steps[:step]:
        view.update(one.event)
    return view


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_view_at_any_step_is_the_fold_from_the_start(data: st.DataObject) -> None:
    game, seats = data.draw(st.sampled_from(MATCHES))
    made, _ = entries(named(game, seats=seats, seed=data.draw(st.integers(0, 30))), messy=True)
    line = timeline(game, made, data.draw(st.sampled_from(PERSPECTIVES)))
    for step in data.draw(st.lists(st.integers(0, len(line)), max_size=8)):
        assert line.view_at(step) == folded(game, line, step)


def test_entries_that_come_in_pieces_make_the_same_timeline() -> None:
    made, _ = entries(named("werewolf", seats=9, seed=4), messy=True)
    whole = timeline("werewolf", made, OMNISCIENT)
    pieces = Timeline(load_game("werewolf"), OMNISCIENT, stage=panel_of("werewolf").stage)
    for at in range(0, len(made), 3):
        pieces.extend(made[at : at + 3])
    assert (pieces.steps, pieces.stages) == (whole.steps, whole.stages)


def test_a_jump_far_into_a_long_match_folds_no_more_than_the_spacing() -> None:
    _, made = long_match(3000)
    line = timeline("werewolf", made, OMNISCIENT)
    for step in (len(line), 17, 2400, 900):
        before = line.folds
        view = line.view_at(step)
        assert line.folds - before <= SPACING
        assert view == folded("werewolf", line, step)


@pytest.mark.parametrize("game, seats", MATCHES)
def test_a_moment_is_the_same_in_every_perspective(game: str, seats: int) -> None:
    made, _ = entries(named(game, seats=seats, seed=8), messy=True)
    lines = [timeline(game, made, perspective) for perspective in PERSPECTIVES]
    for line in lines:
        for step in range(len(line) + 1):
            assert line.step_of(line.moment(step)) == step
            for other in lines:
                there = other.step_of(line.moment(step))
                assert publics(other, there) == publics(line, step), "the public saw the same so far"


def publics(line: Timeline, step: int) -> list[Event]:
    return [one.event for one in line.steps[:step] if one.event.audience is None]


@pytest.mark.parametrize("game, seats", MATCHES)
def test_phases_are_walked_from_end_to_end_and_back(game: str, seats: int) -> None:
    made, _ = entries(named(game, seats=seats, seed=8))
    line = timeline(game, made, PUBLIC)
    step, forward = 0, [0]
    while step < len(line):
        step = line.next_stage(step)
        assert step > forward[-1]
        forward.append(step)
    assert len(forward) >= len(line.stages)
    titles = [line.stage_at(place) for place in forward[1:]]
    assert titles[-1] == "The end"
    back = [step]
    while step:
        step = line.last_stage(step)
        assert step < back[-1]
        back.append(step)
    assert set(back) <= set(forward) | {len(line)}


def test_a_ply_is_where_show_puts_it() -> None:
    made, _ = entries(named("avalon", seats=5, seed=2))
    line = timeline("avalon", made, OMNISCIENT)
    assert line.plies is not None
    deal = sum(
        isinstance(entry, Event)
        for entry in made[: next(i for i, e in enumerate(made) if isinstance(e, Input))]
    )
    assert line.step_of_ply(0) == deal
    for ply in range(1, line.plies + 1):
        assert all(step.ply is None or step.ply < ply for step in line.steps[: line.step_of_ply(ply)])
        assert line.steps[line.step_of_ply(ply)].ply == ply
    assert timeline("avalon", made, PUBLIC).plies is None, (
        "the public is not told how much happened in secret"
    )


def test_faults_are_counted_up_to_the_step() -> None:
    made, end = entries(named("werewolf", seats=9, seed=6), messy=True)
    line = timeline("werewolf", made, OMNISCIENT)
    assert not any(line.faults_at(0).values())
    total = line.faults_at(len(line))
    for kind in ("forced", "late", "forfeit"):
        assert sum(found[kind] for found in total.values()) == end.counts.get(kind, 0)
    assert sum(found["forced"] for found in total.values()) > 0


def test_an_event_that_the_game_cannot_fold_stops_the_view_and_nothing_else() -> None:
    made, _ = entries(named("avalon", seats=5, seed=2))
    cut = made[:40]
    line = timeline("avalon", [*cut, Event("votes", {"nonsense": 1}), *made[40:60]], OMNISCIENT)
    sound = timeline("avalon", cut, OMNISCIENT)
    assert len(line) > len(sound)
    assert line.view_at(len(line)) == sound.view_at(len(sound))
