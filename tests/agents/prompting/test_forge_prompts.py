"""The prompts of Forge: within budgets, of what the seat saw alone, and with the options as they are."""

import random
from typing import Any

import pytest

from agents.prompting.answers import constraint_of
from agents.prompting.prompter import STYLES, Prompter
from agents.prompting.template import Style
from games.spaces import Choice, Text
from tests.agents.prompting.tables import Table, play, words

TABLES = (
    Table("forge", 3, {"attempts": 2, "rounds": 2}),
    Table("forge", 2, {"mode": "duel", "attempts": 1, "rounds": 1, "setting": "json", "prove": True}),
    Table("forge", 6, {"mode": "relay", "rounds": 1}),
)
BUDGETS: dict[Style, int] = {"full": 1200, "compact": 300}

every_table = pytest.mark.parametrize("table", TABLES, ids=str)


@every_table
@pytest.mark.parametrize("style", STYLES)
def test_each_question_fits_its_budget_and_lists_the_options(table: Table, style: Style) -> None:
    for i, asked in enumerate(play(table, seed=3, player="scripted", styles=[(style, BUDGETS[style])])):
        if i % 4 and asked.turn.space.label == "step":
            continue
        (prompter,) = asked.prompters
        system, user = prompter.messages(asked.turn, want="action")
        assert words(system.content) + words(user.content) <= BUDGETS[style]
        space = asked.turn.space
        if isinstance(space, Choice):
            last = user.content.splitlines()
            assert (", " if style == "full" else " ").join(space.options) in user.content
            assert f"ask {space.label}" in last[-1] or style == "full"
            assert constraint_of(space) is not None
        else:
            assert isinstance(space, Text)


@every_table
def test_only_what_the_seat_saw_is_told(table: Table) -> None:
    rng = random.Random(4)
    for i, asked in enumerate(play(table, seed=8, player="random")):
        if i % 17:
            continue
        other: Any = asked.state.resample(asked.seat.seat, rng)
        for style in STYLES:
            told = []
            for state in (asked.state, other):
                prompter = Prompter(asked.seat, style=style, budget_tokens=9_000, count=words)
                prompter.observe(state.history)
                told.append(prompter.messages(asked.turn, want="both"))
            assert told[0] == told[1]


def test_a_setter_is_told_the_offers_and_a_solver_the_map() -> None:
    labels = set()
    for asked in play(TABLES[0], seed=1, player="scripted", styles=[("full", 9_000), ("compact", 9_000)]):
        full, compact = (
            prompter.messages(asked.turn, want="action")[1].content for prompter in asked.prompters
        )
        if asked.turn.space.label == "set":
            assert "shortest plan" in full and " in " in compact
        else:
            assert "@ " in full and "see" in compact and "@" in compact
        labels.add(asked.turn.space.label)
    assert labels == {"set", "step"}


def test_a_runner_is_told_no_more_of_the_map_than_it_sees() -> None:
    told = {"setter": 0, "runner": 0}
    for asked in play(TABLES[2], seed=2, player="scripted", styles=[("full", 9_000)]):
        text = "\n".join(
            message.content for message in asked.prompters[0].messages(asked.turn, want="action")
        )
        if asked.turn.space.label == "step":
            told["runner"] += 1
            assert "The map now" not in text and "You see:" in text
        else:
            told["setter"] += 1
            assert "The map now" in text
    assert min(told.values()) > 0
