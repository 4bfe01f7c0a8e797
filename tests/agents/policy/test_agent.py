import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from agents.base import Seat
from agents.errors import BadModel
from agents.match import play
from agents.policy.agent import GenerationSettings, PolicyAgent
from agents.policy.base import Completion, Request
from agents.policy.batcher import Batcher
from agents.prompting.answers import answer_text
from games.base import Event
from games.referee import Referee, Turn
from games.registry import game_names, load_game
from games.spaces import Choice, Text
from tests.agents.policy.counting import CountingEngine


class Scripted(CountingEngine):
    """Says what `say` says to each request."""

    def __init__(self, say: Callable[[Request], str], *, finish: Any = "stop") -> None:
        super().__init__(max_batch=64)
        self.say, self.finish = say, finish
        self.context_tokens = 100_000

    def answer(self, given: Request) -> Completion:
        return Completion(self.say(given), (1, 2), (3, 4), (-0.5, 0.0), self.finish, adapter=given.adapter)


def any_choice(given: Request) -> str:
    rng = random.Random(given.seed)
    if given.constraint is not None and given.constraint.choices is not None:
        return rng.choice(given.constraint.choices)
    return "I trust nobody."


def seats(name: str, engine: CountingEngine, **changes: Any) -> tuple[Any, list[PolicyAgent]]:
    game = load_game(name)
    state = game.new(seed=3)
    batcher = Batcher(engine)
    agents = [
        PolicyAgent(
            Seat(game, state.seats, state.options, seat, seat),
            batcher=batcher,
            playing=GenerationSettings(**changes),
            match="m",
            adapter="a@1",
        )
        for seat in range(state.seats)
    ]
    return state, agents


def decide(engine: CountingEngine, turn: Turn, **changes: Any) -> Any:
    state, agents = seats("avalon", engine, **changes)
    agents[0].observe([event for event in state.history if event.visible_to(0)])
    return asyncio.run(agents[0].act(turn))


VOTE = Turn(0, 4, Choice(("approve", "reject"), "vote"))
SPEAK = Turn(0, 4, Text(60))


@pytest.mark.parametrize("name", game_names())
@pytest.mark.parametrize("mode", ["direct", "two"])
def test_it_plays_every_game_to_the_end_without_a_fault(name: str, mode: Any) -> None:
    engine = Scripted(any_choice)
    state, agents = seats(name, engine, mode=mode, style="compact")
    result = asyncio.run(play(Referee(state), agents))
    assert {kind: count for kind, count in result.counts.items() if count and kind != "turns"} == {}
    calls = len(engine.order)
    assert calls == result.counts["turns"] * (2 if mode == "two" else 1)
    assert set(engine.order) == {"m"}
    assert {given.adapter for call in engine.calls for given in call} == {"a@1"}


def test_asked_directly_it_is_held_to_the_actions_and_keeps_no_thought() -> None:
    engine = Scripted(lambda given: "reject")
    decision = decide(engine, VOTE)
    (given,) = engine.calls[0]
    assert given.constraint is not None and given.constraint.choices == ("approve", "reject")
    assert (decision.action, decision.thought, decision.failure) == ("reject", None, None)
    assert decision.trace == {
        "prompt_ids": [1, 2],
        "token_ids": [3, 4],
        "logprobs": [-0.5, 0.0],
        "adapter": "a@1",
        "model": engine.model,
        "prompt": "avalon/full/1",
        "mode": "direct",
        "temperature": 1.0,
        "top_p": 1.0,
    }


def test_in_two_calls_it_thinks_first_and_then_answers_knowing_its_thought() -> None:
    def say(given: Request) -> str:
        return "approve" if given.constraint else "Seat 2 is <|evil|>\nfor sure."

    engine = Scripted(say)
    decision = decide(engine, VOTE, mode="two", thought_tokens=77)
    first, second = (call[0] for call in engine.calls)
    assert first.constraint is None and first.max_tokens == 77
    assert any("Seat 2 is" in message.content for message in second.messages)
    assert all("<|evil|>" not in message.content for message in second.messages)
    assert first.seed != second.seed
    assert decision.action == "approve" and decision.thought == "Seat 2 is <|evil|>\nfor sure."
    assert decision.trace["thought"] == {"prompt_ids": [1, 2], "token_ids": [3, 4], "logprobs": [-0.5, 0.0]}


def test_in_one_reply_thought_and_action_are_told_apart() -> None:
    decision = decide(Scripted(lambda given: "Seat 2 lies.\nAction: reject"), VOTE, mode="one")
    assert decision.action == "reject" and decision.thought == "Seat 2 lies.\nAction: reject"


@pytest.mark.parametrize(
    ("reply", "failure"),
    [("I am not sure", "unparsed"), ("Action: maybe", "illegal"), ("", "unparsed")],
)
def test_a_reply_without_a_legal_action_is_a_typed_failure(reply: str, failure: str) -> None:
    decision = decide(Scripted(lambda given: reply), VOTE, mode="one")
    assert (decision.action, decision.failure) == (None, failure) and decision.reason


def test_it_is_asked_again_with_the_reason() -> None:
    said: list[Request] = []

    def say(given: Request) -> str:
        said.append(given)
        return ("hmm", "Action: bet", "Action: call")[len(said) - 1]

    engine = Scripted(say)
    state, agents = seats("kuhn", engine, mode="one")
    result = asyncio.run(play(Referee(state), agents))
    assert result.counts["unparsed"] == 1 and not result.counts.get("forced")
    assert said[0].seed != said[1].seed
    assert len(said[1].messages[-1].content) > len(said[0].messages[-1].content)


def test_speech_is_kept_within_its_bounds() -> None:
    long = "One two three. " * 10
    assert (
        decide(Scripted(lambda given: long), SPEAK).action
        == "One two three. One two three. One two three. One two three."
    )
    cut = decide(Scripted(lambda given: "We should go. And th", finish="length"), SPEAK)
    assert cut.action == "We should go."
    words = decide(Scripted(lambda given: "we should not tru", finish="length"), SPEAK)
    assert words.action == "we should not"
    number = decide(Scripted(lambda given: "Seat 2 said 3.5 of", finish="length"), SPEAK)
    assert number.action == "Seat 2 said 3.5"
    engine = Scripted(lambda given: "x")
    decide(engine, SPEAK, speech_tokens=33)
    assert engine.calls[0][0].max_tokens == 33


def test_a_thought_never_reaches_another_seat() -> None:
    secret = "my-secret-thought"

    def say(given: Request) -> str:
        if given.constraint is not None:
            return any_choice(given)
        return "hello" if len(given.messages) > 2 else secret

    engine = Scripted(say)
    state, agents = seats("avalon", engine, mode="two")
    entries: list[Any] = []
    asyncio.run(play(Referee(state), agents, emit=entries.extend))
    assert any(secret in (entry.thought or "") for entry in entries if not isinstance(entry, Event))
    thoughts = [given for call in engine.calls for given in call if len(given.messages) == 2]
    assert not any(secret in message.content for given in thoughts for message in given.messages)


def test_the_same_seat_asks_the_same_whatever_has_happened_elsewhere() -> None:
    one, two = Scripted(any_choice), Scripted(any_choice)
    for engine in (one, two):
        state, agents = seats("avalon", engine, style="compact")
        asyncio.run(play(Referee(state), agents))
    key = [(given.seed, given.messages) for call in one.calls for given in call]
    assert sorted(key, key=str) == sorted(
        ((given.seed, given.messages) for call in two.calls for given in call), key=str
    )


def test_an_answer_of_the_model_is_read_as_it_is_written() -> None:
    for name in game_names():
        game = load_game(name)
        state = game.new(seed=2)
        rng = random.Random(2)
        while turns := state.turns():
            actions = {}
            for seat, space in turns.items():
                action = actions[seat] = space.sample(rng)
                text = answer_text(space, action)
                if seat == 0:
                    assert decide(Scripted(lambda given, text=text: text), Turn(0, 1, space)).action == action
            state.apply(actions)


def test_its_version_says_how_it_plays_and_its_policy_who_answers() -> None:
    engine = Scripted(any_choice)
    _, (agent, *_) = seats("avalon", engine, mode="two", temperature=0.7)
    assert agent.version == "1 (avalon/full/1, two, temperature 0.7, top-p 1, 99680 + 256 tokens)"
    assert agent.policy == "counting@0 on nothing, adapter a@1"
    assert not agent.instant and not agent.keeps_time


def test_a_budget_leaves_room_for_the_answer() -> None:
    assert GenerationSettings(speech_tokens=100).budget(1000) == 1000 - 100 - 64
    assert (
        GenerationSettings(mode="two", speech_tokens=100, thought_tokens=200).budget(1000) == 1000 - 300 - 64
    )
    assert GenerationSettings(budget_tokens=300).budget(1000) == 300
    assert GenerationSettings(budget_tokens=3000, speech_tokens=100).budget(1000) == 836


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("model '/home/me/models/tiny': no such folder", "model 'tiny': no such folder"),
        ("~/a/b.json: damaged", "b.json: damaged"),
        ("(/srv/x/y) and/or 3 / 4, ./z, org/name", "(y) and/or 3 / 4, ./z, org/name"),
        ("http://localhost:8000/v1/models says 404", "http://localhost:8000/v1/models says 404"),
    ],
)
def test_no_folder_of_this_machine_comes_into_a_record(said: str, kept: str) -> None:
    engine = Scripted(any_choice)
    engine.fails = lambda given: BadModel(said)
    with pytest.raises(BadModel) as caught:
        decide(engine, VOTE)
    assert str(caught.value) == kept
