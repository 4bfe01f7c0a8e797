"""Measuring a policy, on an engine without a model: what is given to it, what is counted, and how it is told."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agents.policy.service
from agents.errors import EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Request
from agents.policy.settings import PolicySettings
from agents.policy.spec import PolicySpec
from arena.policy_bench import (
    DIGITS,
    SIDES,
    BenchPlan,
    BenchResult,
    measure,
    percentile,
)
from arena.policy_recording import Book, RecordingEngine
from games.errors import BadOption
from tests.agents.policy.counting import CountingEngine, request

KUHN = BenchPlan("kuhn", concurrency=3, matches=17, rounds=2)
HEAD = 2 * DIGITS


class TokenEngine(CountingEngine):
    """Counts tokens as well: a word is one, and of each prompt half is cached."""

    def __init__(self) -> None:
        super().__init__(max_batch=5)
        self.counts = dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens"), 0.0)

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        self.counts["prompt_tokens"] += 10 * len(requests)
        self.counts["cached_tokens"] += 5 * len(requests)
        self.counts["completion_tokens"] += len(requests)
        return await super().complete(requests)

    def facts(self) -> dict[str, float]:
        return dict(self.counts)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[TokenEngine]:
    """Let policies run on engines that count, and return those that were made."""
    made: list[TokenEngine] = []

    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        made.append(TokenEngine())
        return made[-1]

    monkeypatch.setattr(agents.policy.service, "make_engine", make)
    return made


def digits(given: Request) -> str:
    """Return the digits before a request, which are the same before each of its messages."""
    (found,) = {message.content[:HEAD] for message in given.messages}
    return found


def bare(given: Request) -> Request:
    """Return a request without the digits before its messages."""
    return replace(given, messages=tuple(m._replace(content=m.content[HEAD:]) for m in given.messages))


def sides(engine: CountingEngine) -> list[list[list[Request]]]:
    """Return the calls of each side, told apart by their digits, in order."""
    found: list[list[list[Request]]] = []
    last = ""
    for call in engine.calls:
        if digits(call[0]) != last:
            last = digits(call[0])
            found.append([])
        found[-1].append(call)
    return found


def test_the_sides_take_turns_and_direct_gets_what_many_got(
    tmp_path: Path, engines: list[TokenEngine]
) -> None:
    result = measure(KUHN, policy=PolicySettings(), home=tmp_path)
    (engine,) = engines
    assert engine.started == engine.closed == 1
    warm, *turns = sides(engine)
    assert len(turns) == 6 and {given.match for call in warm for given in call} <= {
        "bench-0",
        "bench-1",
        "bench-2",
    }
    heads = [digits(calls[0][0]) for calls in sides(engine)]
    assert len(set(heads)) == 7 and all(len(head.split()) == DIGITS for head in heads)
    for one, many, direct in (turns[:3], (turns[5], turns[1], turns[3])):
        asked = [bare(given) for call in many for given in call]
        again = [bare(given) for call in direct for given in call]
        # Left out is what was under way when the last matches went on unmeasured, and what came then.
        left = iter(asked)
        assert len(again) > len(asked) / 2 and all(given in left for given in again)
        assert max(map(len, direct)) == 5 and max(map(len, many)) == 1
        played = [given.match for call in one for given in call]
        assert len(set(played)) == result.alone == 2
        assert played == sorted(played), "one match after the other"
        assert len({given.match for given in asked}) == 17
        order = [given.match for given in asked]
        ends = {match: place for place, match in enumerate(order)}
        begun = [order.index(match) for match in ends]
        assert all(
            sum(first <= place <= last for first, last in zip(begun, ends.values(), strict=True)) <= 3
            for place in range(len(order))
        )
    assert result.decisions > 0 and (result.many, result.call) == (17, 5)


def test_as_many_matches_run_as_were_asked_for(tmp_path: Path) -> None:
    class Patient(TokenEngine):
        """Answers nobody before three matches have asked."""

        async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
            self.gate = self.gate or asyncio.Event()
            if len({*self.order, *(given.match for given in requests)}) == 3:
                self.gate.set()
            return await super().complete(requests)

    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        return Patient()

    result = measure(replace(KUHN, rounds=1), policy=PolicySettings(), home=tmp_path, make=make)
    assert result.decisions > 0


def test_what_is_told(tmp_path: Path, engines: list[TokenEngine]) -> None:
    told = measure(KUHN, policy=PolicySettings(), home=tmp_path).as_dict()
    assert json.loads(json.dumps(told)) == told
    assert (told["model"], told["game"], told["seats"]) == ("counting@0 on nothing", "kuhn", 2)
    for ratio in told["ratios"].values():
        assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
    for side in SIDES:
        rate = told["decisions_per_s"][side]["median"]
        assert rate > 0
        tokens = {name: told["tokens_per_s"][name][side]["median"] for name in told["tokens_per_s"]}
        assert tokens["prompt_computed"] == pytest.approx(tokens["prompt_cached"])
        assert told["prefix_cache_hit_rate"][side]["median"] == pytest.approx(0.5)
        assert sum(bar["share"] for bar in told["batch"][side]["histogram"]) == pytest.approx(1)
        assert told["batch"][side]["forward_pass"] is None
    assert told["batch"]["direct"]["histogram"][-1]["from"] == 4
    assert told["batch"]["direct"]["mean"]["high"] <= 5
    assert told["batch"]["one"]["histogram"] == [{"from": 1, "to": 1, "share": 1.0}]
    assert told["queue_s"]["p50"]["many"]["median"] <= told["queue_s"]["p99"]["many"]["median"]
    assert set(told["failures"].values()) == {0}
    assert told["matches"] == {"many": 17, "one": 2}


def test_the_same_matches_in_every_round(tmp_path: Path, engines: list[TokenEngine]) -> None:
    for seed in (0, 0, 1):
        measure(replace(KUHN, rounds=1, seed=seed), policy=PolicySettings(), home=tmp_path)
    one, again, other = ({bare(given) for call in e.calls for given in call} for e in engines)
    assert one == again != other


def test_two_calls_are_one_decision(tmp_path: Path, engines: list[TokenEngine]) -> None:
    direct = measure(replace(KUHN, rounds=1), policy=PolicySettings(), home=tmp_path)
    two = measure(replace(KUHN, rounds=1), policy=PolicySettings(mode="two"), home=tmp_path)
    for result, calls in ((direct, 1), (two, 2)):
        side = result.rounds["direct"][0]
        assert side.completion_per_s / side.decisions_per_s == pytest.approx(calls)


def test_what_goes_wrong_is_counted_and_nothing_at_all_is_an_error(
    tmp_path: Path, engines: list[TokenEngine]
) -> None:
    def make(odd: int) -> Any:
        def made(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
            engine = TokenEngine()
            engine.fails = lambda given: PolicyError("no") if len(engine.calls) % odd == 0 else None
            return engine

        return made

    some = measure(replace(KUHN, rounds=1), policy=PolicySettings(), home=tmp_path, make=make(7)).as_dict()
    assert some["failures"]["requests"] > 0 and some["failures"]["forced"] > 0
    with pytest.raises(EngineFailed, match="answered no request; the last failure: no"):
        measure(KUHN, policy=PolicySettings(), home=tmp_path, make=make(1))


def test_fewer_matches_than_run_at_a_time_are_refused() -> None:
    with pytest.raises(BadOption, match="matches: got 3, needed are 32 or more"):
        BenchPlan(matches=3).check()
    assert BenchPlan().check() == (40, 5)
    assert BenchPlan(concurrency=2, matches=2).check() == (2, 1)


def test_the_wrapper_is_its_engine(no_blocking: None) -> None:
    async def main() -> None:
        book = Book("1 2 3")
        engine = TokenEngine()
        wrapped = RecordingEngine(engine, lambda: book)
        await wrapped.start()
        assert (wrapped.model, wrapped.max_batch) == (engine.model, 5)
        assert wrapped.count_tokens("a b") == 2
        await wrapped.publish("v@1", "path")
        assert engine.adapters == {"v@1": "path"}
        (answer,) = await wrapped.complete([request(text="hello")])
        assert isinstance(answer, Completion) and answer.text == "1 2 3 hello"
        assert wrapped.facts() == engine.facts()
        assert book.close() == [request(text="hello")]
        await wrapped.complete([request(text="late")])
        assert len(book.given) == 1 and book.sizes == {1: 1} and book.under_way == 0
        engine.dies = lambda: True
        with pytest.raises(EngineFailed):
            await wrapped.complete([request(), request()])
        assert book.under_way == 0 and book.failed == 2
        await wrapped.close()
        assert engine.closed == 1

    asyncio.run(main())


def test_sizes_are_told_in_powers_of_two() -> None:
    result = BenchResult(KUHN, "vllm")
    result.sizes["many"].update({1: 1, 2: 1, 3: 1, 4: 2, 32: 5})
    assert result.histogram("many") == [(1, 1, 0.1), (2, 3, 0.2), (4, 7, 0.2), (32, 63, 0.5)]


def test_percentiles() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
    assert percentile([float(n) for n in range(1, 201)], 0.99) == 198.0


def test_the_command_for_people(arena: Any, engines: list[TokenEngine]) -> None:
    found = arena("policy", "bench", "--game", "kuhn", "--concurrency", "3", "--rounds", "2")
    assert found.exit_code == 0, found.stderr
    for text in (
        "kuhn, 2 seats, counting@0 on nothing: medians of 2 rounds",
        "one at a time",
        "3 at a time",
        "back end alone",
        "decisions/s",
        "prompt tokens/s, cached",
        "3 matches at a time to one, decisions per second: ",
        "3 matches at a time to the back end alone, same requests: ",
        "Failures: unparsed 0",
        "Requests under way when one was given, 3 matches at a time: 1 ",
    ):
        assert text in found.stdout, text
    assert found.stderr == ""


def test_the_command_for_scripts(arena: Any, engines: list[TokenEngine]) -> None:
    args = (
        "--game",
        "kuhn",
        "--concurrency",
        "2",
        "--matches",
        "8",
        "--rounds",
        "1",
        "--seed",
        "3",
        "--json",
    )
    found = arena("policy", "bench", *args)
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert (told["rounds"], told["concurrency"], told["backend"]) == (1, 2, "transformers")
    assert told["matches"] == {"many": 8, "one": 1}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--game", "chess"], "chess"),
        (["--concurrency", "1"], "--concurrency"),
        (["--matches", "5"], "matches: got 5, needed are 32 or more"),
        (["--rounds", "0"], "--rounds"),
        (["--model", "nowhere"], "model: got 'nowhere', allowed are"),
        (["--backend", "openai"], "MODEL@URL"),
    ],
)
def test_bad_input_is_one_line(args: list[str], said: str, arena: Any) -> None:
    found = arena("policy", "bench", *args)
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert said in line
