"""Forge's panel: every mode within its width, from what the view holds alone."""

from dataclasses import replace
from typing import Any

import pytest

from clients.spectator.drawing import plain, width_of
from clients.spectator.panels import panel_of
from clients.spectator.panels.forge import ForgePanel
from clients.spectator.timeline import Timeline
from games.referee import Input
from games.registry import load_game
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible
from tests.clients.spectator.showing import entries, named

MODES = ((3, {"attempts": 2, "rounds": 1}), (4, {"mode": "relay", "rounds": 1}))


def views(seats: int, options: dict[str, Any], perspective: Perspective) -> Any:
    made, _ = entries(replace(named("forge", seats=seats, seed=4), options=options))
    view = load_game("forge").view(perspective if isinstance(perspective, int) else None)
    for event in (entry for entry in made if hasattr(entry, "kind")):
        if visible(event, perspective):
            view.update(event)
            yield view, event


@pytest.mark.parametrize(("seats", "options"), MODES)
@pytest.mark.parametrize("perspective", [PUBLIC, OMNISCIENT, 0])
@pytest.mark.parametrize("width", [16, 60])
def test_every_view_is_drawn_within_its_width(
    seats: int, options: dict[str, Any], perspective: Perspective, width: int
) -> None:
    panel = panel_of("forge")
    assert isinstance(panel, ForgePanel)
    for view, event in views(seats, options, perspective):
        lines = [*panel.board(view, width=width), *panel.brief(view, width=width)]
        assert lines and all(width_of(line) <= width for line in lines), plain(lines)
        assert len(panel.seats(view, seats)) == seats and panel.mood(event)
    assert panel.stage(view) == "The end"


def test_the_board_shows_the_map_to_who_sees_steps_and_what_came_of_the_tasks() -> None:
    panel = panel_of("forge")
    seen = {PUBLIC: False, OMNISCIENT: False}
    for perspective in seen:
        told = ""
        for view, _ in views(*MODES[0], perspective):
            told = plain(panel.board(view, width=60))
            seen[perspective] |= "@" in told
        assert "navigate" in told and "░" in told
    assert seen == {PUBLIC: False, OMNISCIENT: True}


@pytest.mark.parametrize("perspective", [PUBLIC, OMNISCIENT, 0])
def test_the_attempts_begin_below_the_last_task(perspective: Perspective) -> None:
    options = {"attempts": 2, "rounds": 2}
    made, _ = entries(replace(named("forge", seats=3, seed=4), options=options))
    panel = panel_of("forge")
    line = Timeline(load_game("forge"), perspective, stage=panel.stage, closing=panel.closing)
    line.extend(one for one in made if isinstance(one, Input) or visible(one, perspective))
    heads = {stage.step + stage.after: stage.title for stage in line.stages}
    told = []
    for place, step in enumerate(line.steps):
        told += [heads[place]] if place in heads else []
        told += [step.event.kind] if step.event.kind in ("round", "task", "result") else []
    of_round = [["Round {}, setting", "round", *["task"] * 3, "Round {}, attempting", *["result"] * 3]] * 2
    wanted = [one.format(number) for number, part in enumerate(of_round, 1) for one in part]
    assert [one for one in told if one] == [*wanted, "The end"]
    last = max(place for place, step in enumerate(line.steps) if step.event.kind == "task")
    assert line.stage_at(last) == "Round 2, setting" and line.stage_at(last + 1) == "Round 2, attempting"
