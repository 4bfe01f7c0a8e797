"""Answers: what may be written, and that it is read back."""

import json
import random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.prompting.answers import MAX_CHOICES, answer_text, constraint_of, fit_text, parse_answer
from agents.prompting.parse import Answer, Failure
from games.spaces import ActionSpace, Choice, Subset, Text
from tests.agents.prompting.tables import TABLES, play

WORDS = st.text("ab ,[]\"'<>0123\n", min_size=1, max_size=6)
OPTIONS = st.lists(WORDS, min_size=1, max_size=9, unique=True).map(tuple)
CHOICES = OPTIONS.map(Choice)
SUBSETS = OPTIONS.flatmap(lambda o: st.integers(0, len(o)).map(lambda k: Subset(o, k)))
PIECES = st.sampled_from(
    [
        "Action: bet",
        "<think>",
        "</think>",
        '{"action": 1}',
        "\\boxed{3}",
        "I trust 2.",
        "\n",
        " ",
        "é",
        "```",
        '"',
        "…",
    ]
)
SPEECH = st.lists(PIECES | st.text(max_size=5), max_size=8).map("".join)


def legal(space: ActionSpace, text: str) -> bool:
    """Whether the constraint of `space` lets `text` pass."""
    constraint = constraint_of(space)
    if constraint is None:
        return True
    if constraint.choices is not None:
        return text in constraint.choices
    assert constraint.schema is not None
    jsonschema.validate(json.loads(text), constraint.schema)
    return True


@given(st.one_of(CHOICES, SUBSETS), st.randoms(use_true_random=False))
def test_every_action_is_written_within_the_constraint_and_read_back(
    space: ActionSpace, rng: random.Random
) -> None:
    action = space.sample(rng)
    text = answer_text(space, action)
    assert legal(space, text)
    assert parse_answer(space, text) == Answer(action)


@given(st.one_of(CHOICES, SUBSETS))
def test_every_choice_is_one_legal_action_and_no_two_are_the_same(space: ActionSpace) -> None:
    constraint = constraint_of(space)
    assert constraint is not None and (constraint.choices is None) != (constraint.schema is None)
    if constraint.choices is not None:
        assert all(constraint.choices)
        read = [parse_answer(space, choice) for choice in constraint.choices]
        assert all(isinstance(answer, Answer) and space.contains(answer.action) for answer in read)
        assert len({answer.action for answer in read if isinstance(answer, Answer)}) == len(
            constraint.choices
        )


@given(SPEECH, st.integers(1, 60))
def test_every_speech_is_read_back(text: str, bound: int) -> None:
    space = Text(bound)
    speech = text.strip()[:bound].strip()
    assert parse_answer(space, answer_text(space, speech)) == Answer(speech)


@given(SPEECH | st.text(), st.integers(0, 40))
def test_a_completion_is_a_speech_within_the_bound_or_a_failure(text: str, bound: int) -> None:
    read = parse_answer(Text(bound), text)
    assert isinstance(read, Failure) or Text(bound).contains(read.action)


@given(st.text("ab .!?\n", max_size=80), st.integers(0, 40))
def test_a_cut_speech_is_the_beginning_of_it_and_ends_with_a_sentence_or_a_word(
    text: str, bound: int
) -> None:
    cut = fit_text(text, max_chars=bound)
    assert len(cut) <= bound and text.startswith(cut)
    if cut == text:
        return
    after = text[len(cut) : len(cut) + 1]
    whole_words = after.isspace() or cut.endswith((".", "!", "?")) or not cut
    assert whole_words or not any(c.isspace() for c in text[:bound].strip())


@pytest.mark.parametrize(
    ("text", "bound", "cut"),
    [
        ("I trust 1. I suspect 3 and 4.", 30, "I trust 1. I suspect 3 and 4."),
        ("I trust 1. I suspect 3 and 4.", 20, "I trust 1."),
        ("I trust 1 and 2 and 3", 12, "I trust 1"),
        ("I trust 1 and", 9, "I trust 1"),
        ("Wait! What? No one knows.", 12, "Wait! What?"),
        ("Ratio 3.5 of them", 9, "Ratio 3.5"),
        ("incomprehensibilities", 5, "incom"),
    ],
)
def test_speech_is_cut_where_a_reader_would_cut_it(text: str, bound: int, cut: str) -> None:
    assert fit_text(text, max_chars=bound) == cut


def test_a_subset_is_written_as_options_while_they_are_few_and_as_json_beyond() -> None:
    team = Subset(tuple("01234"), 2, "propose")
    constraint = constraint_of(team)
    assert constraint is not None and constraint.choices is not None
    assert constraint.choices[:2] == ("0, 1", "0, 2") and len(constraint.choices) == 10
    assert parse_answer(team, "3, 0") == Answer(("0", "3"))
    many = Subset(tuple(map(str, range(30))), 4)
    constraint = constraint_of(many)
    assert constraint is not None and constraint.choices is None and constraint.schema == many.schema()
    assert answer_text(many, ("1", "2", "3", "29")) == '["1", "2", "3", "29"]'
    assert parse_answer(many, '["29","2","1","3"]') == Answer(("1", "2", "3", "29"))
    assert MAX_CHOICES < 27405


def test_what_is_not_a_choice_is_read_as_any_reply() -> None:
    vote = Choice(("approve", "reject"), "vote")
    assert parse_answer(vote, "I like them.\nAction: approve") == Answer("approve")
    assert parse_answer(vote, " approve\n") == Answer("approve")
    failure = parse_answer(vote, "approve or reject, who knows")
    assert isinstance(failure, Failure) and failure.kind == "unparsed"


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_action_of_a_match_is_written_and_read_back(table: object) -> None:
    rng = random.Random(5)
    for asked in play(table, seed=4, player="random"):  # type: ignore[arg-type]
        space = asked.turn.space
        for action in (space.default, space.sample(rng)):
            text = answer_text(space, action)
            assert legal(space, text)
            assert parse_answer(space, text) == Answer(action)
