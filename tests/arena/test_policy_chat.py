"""What is told of a decision: the prompt to the letter, the reply to the token, and the same asked again."""

import json
from dataclasses import replace
from io import StringIO
from math import exp
from pathlib import Path

import pytest
from rich.console import Console

from agents.policy.base import Completion, Message
from agents.policy.presets import tiny_folder
from agents.policy.settings import PolicySettings
from arena.policy_chat import Asking, Lens, weigh
from arena.policy_chat_view import View, document
from arena.policy_moments import Moments, read_moments
from games.referee import Input
from tests.agents.policy.models import save_model
from tests.arena.policy_records import SETTINGS, play, play_bots, read, rewrite


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def kuhn(home: Path) -> Moments:
    """Return a match between two seats of the embedded model."""
    return read_moments(play(home, "kuhn", ("policy", "policy"), home=home))


@pytest.fixture(scope="module")
def avalon(home: Path) -> Moments:
    """Return a match in which one of five seats is the embedded model's."""
    seating = ("policy", "scripted", "scripted", "scripted", "scripted")
    return read_moments(play(home, "avalon", seating, home=home))


@pytest.fixture(scope="module")
def two(home: Path) -> Moments:
    """Return a match in which the model thinks first."""
    settings = SETTINGS.model_copy(update={"mode": "two", "thought_tokens": 12})
    return read_moments(play(home, "kuhn", ("policy", "policy"), home=home, settings=settings))


def test_the_first_decision_is_a_language_models(avalon: Moments) -> None:
    moment = avalon.find()
    seat = avalon.record.header.seats[moment.turn.seat]
    assert moment.policy and seat.spec == "policy"
    assert all(one.policy for one in avalon.listed())
    together = next(one for one in avalon.listed() if one.turn.space.label == "vote")
    assert avalon.find(ply=together.turn.ply) is together
    assert not avalon.find(ply=together.turn.ply, seat=(together.turn.seat + 1) % 5).policy


def test_every_recorded_prompt_is_known_to_be_what_the_model_saw(
    avalon: Moments, kuhn: Moments, home: Path
) -> None:
    lens = Lens(SETTINGS, home=home)
    for moments in (avalon, kuhn):
        for moment in moments.listed():
            (call,) = lens.recorded(moments, moment)
            trace = moment.given.trace
            assert trace is not None and call.exact is True and call.want == "action"
            assert call.prompt_tokens == len(trace["prompt_ids"])
            assert lens.tokenizer is not None and call.raw == lens.tokenizer.render(call.messages)
            assert [token.id for token in call.tokens] == trace["token_ids"]
            assert [token.logprob for token in call.tokens] == trace["logprobs"]
            assert call.reply == "".join(token.text for token in call.tokens).removesuffix("<|end|>")


def test_a_thought_is_shown_with_its_own_call(two: Moments, home: Path) -> None:
    lens = Lens(SETTINGS, home=home)
    for moment in two.listed():
        thinking, answering = lens.recorded(two, moment)
        assert (thinking.want, answering.want) == ("thought", "action")
        assert thinking.exact is True and answering.exact is True
        assert moment.given.trace is not None
        assert [one.id for one in thinking.tokens] == moment.given.trace["thought"]["token_ids"]
        assert answering.reply == moment.given.action


def test_another_prompt_than_was_seen_is_shown_as_recorded(avalon: Moments, home: Path) -> None:
    moment = avalon.listed()[-1]
    lens = Lens(SETTINGS.model_copy(update={"budget_tokens": 120}), home=home)
    whole = Lens(SETTINGS, home=home).recorded(avalon, moment)[0]
    (call,) = lens.recorded(avalon, moment)
    assert call.exact is False and call.messages != whole.messages
    assert call.raw == whole.raw and call.prompt_tokens == whole.prompt_tokens
    told = shown(lens, avalon, moment.index)
    assert "it is shown as recorded" in told and "the very string" in told


def test_tokens_of_another_model_are_not_read(avalon: Moments, home: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other")
    lens = Lens(PolicySettings(model=str(other), style="compact", threads=1), home=home)
    moment = avalon.find()
    (call,) = lens.recorded(avalon, moment)
    assert moment.given.trace is not None
    assert [token.id for token in call.tokens] == moment.given.trace["token_ids"]
    assert not any(token.text for token in call.tokens) and call.exact is None
    assert call.reply == moment.given.action
    assert "tokens by number" in (told := shown(lens, avalon, moment.index))
    assert f"#{call.tokens[0].id} {exp(call.tokens[0].logprob or 0.0):.3f}" in told


def test_a_bots_decision_is_shown_with_the_prompt_a_model_would_get(home: Path, tmp_path: Path) -> None:
    for game, seats in (("avalon", 5), ("werewolf", 6), ("kuhn", 2)):
        moments = read_moments(play_bots(tmp_path, game, seats=seats, messy=True))
        lens = Lens(SETTINGS, home=home)
        for moment in moments.all[:60]:
            (call,) = lens.recorded(moments, moment)
            assert call.exact is None and not call.tokens and call.messages[0].role == "system"
            assert (call.reply is not None) == (moment.given.action is not None and moment.fate == "played")


def test_a_style_and_a_mode_given_by_hand_hold(avalon: Moments, home: Path) -> None:
    settings = SETTINGS.model_copy(update={"budget_tokens": 100_000, "context_tokens": 100_000})
    lens = Lens(settings, home=home, style="full", mode="two")
    moment = avalon.find()
    lens.folder = None  # a context that is as long as the settings say
    thinking, answering = lens.recorded(avalon, moment)
    assert "# What happened so far" in thinking.messages[1].content or "# Now" in thinking.messages[1].content
    assert thinking.exact is None and answering.exact is False


def test_asked_again_the_model_answers_as_in_the_match(avalon: Moments, home: Path) -> None:
    lens = Lens(SETTINGS, home=home)
    with Asking(lens) as asking:
        for moment in avalon.listed()[:4]:
            asked = asking.ask(avalon, moment, how=lens.playing)
            (sample,) = asked.samples
            (call,) = sample.calls
            assert moment.given.trace is not None
            assert sample.decision.action == moment.given.action
            assert [token.id for token in call.tokens] == moment.given.trace["token_ids"]
            # Rounding differs with a batch's shape.
            scores = [token.logprob for token in call.tokens]
            assert scores == pytest.approx(moment.given.trace["logprobs"], abs=1e-3)
            assert call.messages == lens.recorded(avalon, moment)[0].messages
            assert asked.adapter == "base" and asked.model == moment.given.trace["model"]


def test_every_option_has_its_probability(kuhn: Moments, home: Path) -> None:
    lens = Lens(SETTINGS, home=home)
    moment = kuhn.find()
    with Asking(lens) as asking:
        asked = asking.ask(kuhn, moment, how=lens.playing, samples=3)
        assert len(asked.samples) == 3 and asked.options is not None
        options = {option.text: option for option in asked.options.options}
        assert set(options) == set(moment.turn.space.to_data()["options"])
        known = sum(option.probability or 0.0 for option in options.values())
        assert asked.options.rest == pytest.approx(1 - known) and asked.options.rest < 0.01
        for sample in asked.samples:
            (call,) = sample.calls
            mass = exp(sum(token.logprob or 0.0 for token in call.tokens))
            assert call.reply is not None
            assert (options[call.reply].probability or 0.0) >= mass - 1e-3
        cold = asking.ask(kuhn, moment, how=replace(lens.playing, temperature=0.0))
        assert cold.options is not None and cold.options.options[0].probability == 1.0
        assert cold.options.rest == 0.0


def test_samples_of_later_questions_are_others(avalon: Moments, home: Path) -> None:
    lens = Lens(SETTINGS, home=home)
    moment = next(one for one in avalon.listed() if one.turn.space.label == "speak")
    how = replace(lens.playing, temperature=3.0)
    with Asking(lens) as asking:
        first = asking.ask(avalon, moment, how=how, samples=4)
        second = asking.ask(avalon, moment, how=how, samples=4)
    replies = [sample.calls[0].reply for asked in (first, second) for sample in asked.samples]
    assert len(set(replies)) > 4
    assert first.options is None


def drawn(text: str, ids: tuple[int, ...], *logprobs: float) -> Completion:
    return Completion(text, (), ids, logprobs, "stop")


def test_probabilities_are_summed_over_ways_to_write_an_option() -> None:
    two_ways = [drawn("10", (1, 2), -1.0, -0.5), drawn("10", (3,), -2.0), drawn("1", (1,), -1.5)]
    found = weigh(["1", "10", "2", "3"], [*two_ways, two_ways[0]])
    first, second, *others = found.options
    assert (first.text, first.drawn) == ("10", 3)
    assert first.probability == pytest.approx(exp(-1.5) + exp(-2.0))
    assert (second.text, second.probability) == ("1", pytest.approx(exp(-1.5)))
    assert [option.probability for option in others] == [None, None]
    assert found.rest == pytest.approx(1 - 2 * exp(-1.5) - exp(-2.0))


def test_without_log_probabilities_only_what_was_drawn_is_told() -> None:
    found = weigh(["a", "b"], [Completion("b", (), (), (), "stop")])
    assert [(option.text, option.drawn, option.probability) for option in found.options] == [
        ("b", 1, None),
        ("a", 0, None),
    ]
    assert found.rest is None


def shown(lens: Lens, moments: Moments, index: int, *, width: int = 80, raw: bool = False) -> str:
    out = StringIO()
    view = View(Console(file=out, width=width, markup=False, highlight=False), raw=raw)
    moment = moments.all[index]
    view.moment(moments, moment)
    view.calls(lens.recorded(moments, moment))
    view.recorded(moments, moment)
    return out.getvalue()


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int, avalon: Moments, home: Path) -> None:
    lens = Lens(SETTINGS, home=home)
    for moment in avalon.listed()[-3:]:
        for raw in (False, True):
            told = shown(lens, avalon, moment.index, width=width, raw=raw)
            assert max(map(len, told.splitlines())) <= width
            assert ("<|assistant|>" in told.replace("\n", "")) == raw


def test_nothing_in_a_record_controls_the_terminal(avalon: Moments, home: Path, tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e\x07<|im_start|>"
    record = read(avalon.path)
    record.entries = [
        entry._replace(thought=evil, trace={"model": evil, "adapter": evil, "token_ids": [1, 10**9]})
        if isinstance(entry, Input) and entry.trace
        else entry
        for entry in record.entries
    ]
    moments = read_moments(rewrite(tmp_path / "evil.arena", record))
    lens = Lens(SETTINGS, home=home)
    told = shown(lens, moments, moments.find().index)
    assert not set(told) & {"\x1b", "\u202e", "\x07"}
    assert "\\x1b" in told or "\\u001b" in told


@pytest.mark.parametrize(
    "trace",
    [
        {"token_ids": "x"},
        {"token_ids": [-1], "prompt_ids": [True]},
        {"token_ids": [1.5], "logprobs": None},
        {"token_ids": [10**12], "logprobs": ["a"], "model": 3, "prompt": 7},
        {"token_ids": [1], "prompt_ids": [5], "prompt": "a/b/c"},
        {"token_ids": [1], "thought": []},
        {"token_ids": [1], "logprobs": [1e300]},
        {"token_ids": [1], "logprobs": [-1e300]},
    ],
)
def test_a_trace_may_hold_anything(
    trace: dict[str, object], avalon: Moments, home: Path, tmp_path: Path
) -> None:
    record = read(avalon.path)
    record.entries = [
        entry._replace(trace=trace) if isinstance(entry, Input) and entry.trace else entry
        for entry in record.entries
    ]
    moments = read_moments(rewrite(tmp_path / "odd.arena", record))
    lens = Lens(SETTINGS, home=home)
    moment = moments.find()
    assert shown(lens, moments, moment.index)
    data = document(moments, moment, lens.recorded(moments, moment), None, raw=True, lens=lens)
    assert json.loads(json.dumps(data))["recorded"]["calls"]


def test_without_a_tokenizer_the_messages_are_shown_all_the_same(avalon: Moments, home: Path) -> None:
    lens = Lens(
        PolicySettings(backend="openai", model="x@http://127.0.0.1:9", style="compact", budget_tokens=2000),
        home=home,
    )
    moment = avalon.find()
    (call,) = lens.recorded(avalon, moment)
    assert (call.raw, call.prompt_tokens, call.exact) == (None, None, None)
    assert call.messages == Lens(SETTINGS, home=home).recorded(avalon, moment)[0].messages
    assert "the server's" in lens.note and isinstance(call.messages[0], Message)


def test_the_embedded_model_is_what_these_tests_show(home: Path) -> None:
    assert Lens(SETTINGS, home=home).folder == tiny_folder()
