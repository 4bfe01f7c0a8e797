import json

import jsonschema
import pytest

from agents.policy.constraints import Constraint
from agents.prompting.proposals import TEXT_EXAMPLE, json_messages, offer_messages, version
from agents.prompting.task_schema import task_schema
from games.tasks.cases import seed_case
from games.tasks.difficulty import SKILLS, measured
from games.tasks.edits import edit_names, vary
from games.tasks.generate import Knobs, focused, generate
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec
from games.tasks.text_generate import generate_text

SEED = measured(seed_case())
assert SEED is not None
FIELDS = ("version", "world", "layout", "goal", "budget")


def written(spec: TaskSpec) -> dict[str, object]:
    return {name: value for name, value in spec.to_data().items() if name in FIELDS}


@pytest.mark.parametrize("skill", SKILLS)
def test_generated_tasks_keep_to_the_schema(skill: str) -> None:
    for seed in range(4):
        knobs = focused(Knobs(objects=3, rule_depth=1 + seed % 3, patrols=seed % 2), skill)
        jsonschema.validate(written(generate(seed, knobs)), task_schema("grid"))
        if skill != "dodge":
            words = focused(Knobs(objects=3, rule_depth=2), skill)
            jsonschema.validate(written(generate_text(seed, words)), task_schema("text"))


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 0},
        {"world": "ocean"},
        {"goal": {"eaten": "cake"}},
        {"text": "x"},
        {"goal": {"never": {"at": "exit"}}},
    ],
)
def test_the_schema_refuses_what_no_task_is(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**written(seed_case()), **change}, task_schema("grid"))


def test_the_examples_are_tasks() -> None:
    jsonschema.validate(TEXT_EXAMPLE, task_schema("text"))
    assert solve_task(TaskSpec.from_data(TEXT_EXAMPLE)).plan
    user = json_messages(world="grid", skill="open", wanted=(2, 9, 1, 0.5, 0), parent=None, refused="")[1]
    example = next(line for line in user.content.splitlines() if line.startswith("{"))
    assert TaskSpec.from_text(example).hash == seed_case().hash
    jsonschema.validate(json.loads(example), task_schema("grid"))


def test_a_grammar_understands_the_schema() -> None:
    llguidance = pytest.importorskip("llguidance")
    for world in ("grid", "text"):
        constraint = Constraint(schema=task_schema(world))
        grammar = llguidance.LLMatcher.grammar_from_json_schema(constraint.schema)
        assert llguidance.LLMatcher.validate_grammar(grammar) == ""


def test_offers_are_told_with_what_was_wrong_with_the_last_choice() -> None:
    assert SEED is not None
    offers = {name: child for name in edit_names(SEED) if (child := vary(SEED, name, seed=1)) is not None}
    assert len(offers) > 4
    for style in ("full", "compact"):
        told = offer_messages(
            style=style,
            skill="open",
            wanted=(3, 14, 2, 0.5, 1),
            parent=SEED,
            offers=offers,
            refused="easy [now]",
        )
        text = told[1].content
        assert all(name in text for name in offers)
        assert "open" in text and "easy (now)" in text
        plain = offer_messages(
            style=style, skill="open", wanted=(3, 14, 2, 0.5, 1), parent=SEED, offers=offers, refused=""
        )
        assert "easy" not in plain[1].content
    assert version("offers", "full") != version("json", "full")


def test_a_parent_is_shown_without_its_claims() -> None:
    assert SEED is not None
    told = json_messages(
        world="grid", skill="open", wanted=(3, 14, 2, 0.5, 1), parent=SEED, refused="unsolvable"
    )
    text = told[1].content
    shown = next(line for line in text.splitlines() if line.startswith("{"))
    assert set(json.loads(shown)) == set(FIELDS)
    assert "Your last task was not taken: unsolvable" in text
