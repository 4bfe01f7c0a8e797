"""Sequences that are computed together, on small models with random weights."""

import json
import math
import weakref
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.errors import BadAdapter, BadModel, PolicyError, PromptTooLong, UnknownAdapter
from agents.policy.base import BASE, Completion, Message, Request
from agents.policy.chat import ChatTokenizer
from agents.policy.constraints import Guides, SchemaGuide
from agents.policy.decoder import Decoder, Job
from agents.policy.kv import BLOCK_TOKENS, Rows
from agents.policy.local_model import LocalModel
from tests.agents.policy.asked import JSON, MIXED, RULES, VOTE, ask, endless, settings

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def decoder_of(model: Path, **changes: Any) -> Decoder:
    return Decoder(LocalModel(settings(model, **changes)))


def complete(decoder: Decoder, requests: Iterable[Request]) -> list[Completion | PolicyError]:
    """Answer requests that come together."""
    jobs = [Job(request) for request in requests]
    for job in jobs:
        decoder.add(job)
    found: dict[Job, Completion | PolicyError] = {}
    while not decoder.idle:
        found.update(decoder.step())
    return [found[job] for job in jobs]


def answers(model: Path, requests: Iterable[Request], **changes: Any) -> list[Completion]:
    found: list[Any] = complete(decoder_of(model, **changes), requests)
    assert all(isinstance(one, Completion) for one in found), found
    return found


def teacher_forced(model: Any, guides: Guides, given: Request, done: Completion) -> list[float]:
    """Return the log-probability of each token, computed anew from one pass over prompt and completion."""
    with torch.inference_mode():
        ids = torch.tensor([[*done.prompt_ids, *done.token_ids]])
        logits = model(input_ids=ids, use_cache=False).logits[0, len(done.prompt_ids) - 1 : -1].double()
    guide = guides.guide(given.constraint)
    found = []
    for row, token in zip(logits, done.token_ids, strict=True):
        scores = row / given.temperature
        if guide.ids is not None:
            allowed = torch.full_like(scores, -math.inf)
            allowed[guide.ids] = 0
            scores = scores + allowed
        elif guide.mask is not None:
            scores = scores.masked_fill(torch.from_numpy(~guide.mask), -math.inf)
        found.append(float(torch.log_softmax(scores, -1)[token]))
        if token != guides.vocabulary.end:
            guide.advance(token)
    return found


@pytest.mark.parametrize(("kind", "temperature"), [("model", 1.0), ("model", 0.6), ("grouped", 1.7)])
def test_log_probabilities_are_those_of_the_sampling_distribution(
    kind: str, temperature: float, request: pytest.FixtureRequest
) -> None:
    from transformers import AutoModelForCausalLM

    folder: Path = request.getfixturevalue(f"{kind}_folder")
    given = [replace(one, temperature=temperature) for one in MIXED[:12]]
    # The second round begins with what the first has left in the cache.
    found = answers(folder, given * 2)
    assert {one.cached_tokens > 0 for one in found} == {True, False}
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    inner = ChatTokenizer(folder).inner
    guides = Guides(inner, vocabulary_size=len(inner))
    for one, done in zip(given * 2, found, strict=True):
        assert np.allclose(done.logprobs, teacher_forced(model, guides, one, done), atol=1e-4)


def test_prompts_are_those_of_the_chat_template(model_folder: Path) -> None:
    tokenizer = ChatTokenizer(model_folder)
    for one, done in zip(MIXED, answers(model_folder, MIXED), strict=True):
        assert done.prompt_ids == tokenizer.prompt_ids(one.messages)


def test_constrained_answers_are_what_was_allowed_and_end_by_themselves(model_folder: Path) -> None:
    for one, done in zip(MIXED * 2, answers(model_folder, MIXED * 2), strict=True):
        assert done.finish_reason in ("stop", "length")
        if one.constraint is None:
            assert len(done.token_ids) <= one.max_tokens
        elif one.constraint.choices is not None:
            assert done.text in one.constraint.choices and done.finish_reason == "stop"
        else:
            assert set(json.loads(done.text)) <= {"0", "1", "2"} and done.finish_reason == "stop"
        assert len(done.logprobs) == len(done.token_ids) and all(p <= 0 for p in done.logprobs)


def test_a_request_is_answered_the_same_whatever_it_is_computed_with(model_folder: Path) -> None:
    together = answers(model_folder, MIXED)
    alone = answers(model_folder, MIXED, max_batch=1, prefix_cache_mb=0)
    backwards = answers(model_folder, MIXED[::-1], max_batch=5)[::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.token_ids == two.token_ids == three.token_ids
        assert np.allclose(one.logprobs, two.logprobs, atol=1e-4)
        assert np.allclose(one.logprobs, three.logprobs, atol=1e-4)


def test_other_seeds_give_other_answers_and_temperature_zero_does_not_care(model_folder: Path) -> None:
    sampled = answers(model_folder, [replace(MIXED[0], seed=seed) for seed in range(8)])
    assert len({one.token_ids for one in sampled}) == 8
    greedy = answers(model_folder, [replace(MIXED[0], seed=seed, temperature=0) for seed in range(3)])
    assert len({one.token_ids for one in greedy}) == 1
    assert set(greedy[0].logprobs) == {0.0}


def test_what_was_computed_of_a_prompt_is_used_again(model_folder: Path) -> None:
    first = ask(1)
    longer = replace(
        first, messages=(first.messages[0], Message("user", first.messages[1].content + " and more"))
    )
    other = replace(first, messages=(Message("system", "Other rules. " * 20), first.messages[1]))

    decoder = decoder_of(model_folder)
    found: list[Any] = [complete(decoder, [one])[0] for one in (first, longer, first, other)]
    cold, grown, again, strange = found
    shared = len([1 for a, b in zip(cold.prompt_ids, grown.prompt_ids, strict=False) if a == b])
    assert cold.cached_tokens == strange.cached_tokens == 0
    assert shared - 2 * BLOCK_TOKENS < grown.cached_tokens <= shared
    assert len(cold.prompt_ids) - BLOCK_TOKENS <= again.cached_tokens < len(cold.prompt_ids)
    assert again.token_ids == cold.token_ids


def test_long_and_short_answers_do_not_wait_for_each_other(model_folder: Path) -> None:
    decoder = decoder_of(model_folder)
    long = Job(endless(0))
    decoder.add(long)
    decoder.step()
    shorts = [Job(ask(i, constraint=VOTE)) for i in range(5)]
    for job in shorts:
        decoder.add(job)
    order: list[Job] = []
    while len(order) < len(shorts):
        order += [job for job, _ in decoder.step()]
    assert set(order) == set(shorts) and not decoder.idle
    assert decoder.abandon() == [long] and decoder.idle


def test_an_adapter_whose_requests_were_all_cancelled_holds_no_memory(
    model_folder: Path, full_folder: Path
) -> None:
    decoder = decoder_of(model_folder)
    decoder.model.publish("whole@1", str(full_folder))
    job = Job(endless(1, adapter="whole@1"))
    decoder.add(job)
    decoder.step()
    assert "whole@1" in decoder._lanes
    job.cancelled = True
    complete(decoder, MIXED[:2])
    assert set(decoder._lanes) == {BASE}


def test_a_grammar_that_gives_up_fails_its_request_alone(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gives_up(guide: SchemaGuide, token: int) -> None:
        raise BadModel("the grammar is too large")

    monkeypatch.setattr(SchemaGuide, "advance", gives_up)

    decoder = decoder_of(model_folder)
    found = complete(decoder, MIXED[:8])
    schema = [one.constraint is JSON for one in MIXED[:8]]
    assert [isinstance(one, BadModel) for one in found] == schema
    assert decoder.counts["failures"] == sum(schema)
    others = [one for one, bad in zip(MIXED[:8], schema, strict=True) if not bad]
    monkeypatch.undo()
    assert [one.token_ids for one in found if isinstance(one, Completion)] == [
        one.token_ids for one in answers(model_folder, others)
    ]


def test_stop_strings_end_free_text_and_are_not_part_of_it(model_folder: Path) -> None:
    plain = answers(model_folder, [ask(3, max_tokens=40)])[0]
    middle = plain.text[len(plain.text) // 2]
    (cut,) = answers(model_folder, [ask(3, max_tokens=40, stop=(middle,))])
    assert cut.text == plain.text[: plain.text.index(middle)] and cut.finish_reason == "stop"
    assert cut.token_ids == plain.token_ids[: len(cut.token_ids)]


def test_prompts_without_room_are_refused_alone(model_folder: Path) -> None:
    asked = [ask(1), ask(2, rules="far too long " * 200), ask(3, constraint=VOTE)]
    found = complete(decoder_of(model_folder, context_tokens=256), asked)
    assert [type(one) for one in found] == [Completion, PromptTooLong, Completion]
    (bounded,) = answers(model_folder, [ask(1, max_tokens=1000, temperature=50.0)], context_tokens=128)
    assert len(bounded.prompt_ids) + len(bounded.token_ids) <= 128


def test_adapters_answer_as_themselves_side_by_side(
    model_folder: Path, lora_folder: Path, full_folder: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    given = [replace(one, adapter=(BASE, "a@1", "whole@1")[i % 3]) for i, one in enumerate(MIXED)]

    decoder = decoder_of(model_folder)
    before: list[Any] = complete(decoder, MIXED)
    decoder.model.publish("a@1", str(lora_folder))
    decoder.model.publish("whole@1", str(full_folder))
    decoder.model.publish("a@1", str(lora_folder))
    mixed: list[Any] = complete(decoder, given)
    after: list[Any] = complete(decoder, MIXED)
    assert [one.token_ids for one in after] == [one.token_ids for one in before]
    (unknown,) = complete(decoder, [replace(MIXED[0], adapter="b@1")])
    with pytest.raises(UnknownAdapter, match="published already"):
        decoder.model.publish("a@1", str(full_folder))
    with pytest.raises(UnknownAdapter, match=r"has no adapter_config\.json"):
        decoder.model.publish("c@1", str(lora_folder.parent))
    assert isinstance(unknown, UnknownAdapter)
    assert "published to this engine are: a@1, whole@1" in str(unknown)
    base = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    lora = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(model_folder), str(lora_folder)
    ).eval()
    full = AutoModelForCausalLM.from_pretrained(full_folder).eval()
    inner = ChatTokenizer(model_folder).inner
    guides = Guides(inner, vocabulary_size=len(inner))
    for i, (one, done) in enumerate(zip(given, mixed, strict=True)):
        assert done.adapter == one.adapter
        wanted = teacher_forced((base, lora, full)[i % 3], guides, one, done)
        assert np.allclose(done.logprobs, wanted, atol=1e-4)
        if i % 3:
            assert done.logprobs != before[i].logprobs


def test_versions_that_were_put_away_are_loaded_again(
    model_folder: Path, lora_folder: Path, full_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.policy.local_model.MAX_LOADED", 2)
    decoder = decoder_of(model_folder)
    for version, folder in (
        ("a@1", lora_folder),
        ("b@1", full_folder),
        ("a@2", lora_folder),
        ("b@2", full_folder),
    ):
        decoder.model.publish(version, str(folder))
    wanted = [
        replace(MIXED[i], adapter=version) for i in range(4) for version in ("a@1", "b@1", "a@2", "b@2", BASE)
    ]
    one: list[Any] = complete(decoder, wanted)
    two: list[Any] = complete(decoder, wanted[::-1])
    # Those that were loaded again in the middle of a pass can be switched off for another one.
    decoder.model.publish("c@1", str(lora_folder))
    three: Any = complete(decoder, [replace(MIXED[0], adapter="c@1")])[0]
    assert three.token_ids == one[0].token_ids
    assert [a.token_ids for a in one] == [b.token_ids for b in two[::-1]]
    for first, second in ((0, 2), (1, 3)):
        for a, b in zip(one[first::5], one[second::5], strict=True):
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)


def test_a_version_that_is_gone_fails_its_requests_alone(
    model_folder: Path, full_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setattr("agents.policy.local_model.MAX_LOADED", 1)
    gone = shutil.copytree(full_folder, tmp_path / "gone")

    decoder = decoder_of(model_folder)
    decoder.model.publish("gone@1", str(gone))
    decoder.model.publish("kept@1", str(full_folder))
    shutil.rmtree(gone)
    versions = ("gone@1", "kept@1", BASE, "gone@1")
    found = complete(decoder, [replace(MIXED[0], adapter=version) for version in versions])
    assert [type(one) for one in found] == [BadAdapter, Completion, Completion, BadAdapter]


def test_a_version_that_was_changed_meanwhile_is_not_loaded_again(
    model_folder: Path, full_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setattr("agents.policy.local_model.MAX_LOADED", 1)
    changed = shutil.copytree(full_folder, tmp_path / "changed")

    decoder = decoder_of(model_folder)
    decoder.model.publish("a@1", str(changed))
    (before,) = complete(decoder, [replace(MIXED[0], adapter="a@1")])
    decoder.model.publish("b@1", str(full_folder))  # takes its place
    complete(decoder, [replace(MIXED[0], adapter="b@1")])
    config = changed / "config.json"
    config.write_text(config.read_text() + " ")
    again, other = complete(decoder, [replace(MIXED[0], adapter=one) for one in ("a@1", "b@1")])
    assert isinstance(before, Completion) and isinstance(other, Completion)
    assert isinstance(again, BadAdapter) and "not those that were published" in str(again)


def test_what_runs_is_kept_within_its_memory(
    model_folder: Path, full_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = Rows.reserve
    alive: weakref.WeakSet[Rows] = weakref.WeakSet()
    peaks: list[int] = []

    def watched(rows: Rows, count: int, tokens: int, *, used: int) -> None:
        old = rows.room
        reserve(rows, count, tokens, used=used)
        moving = rows.bytes_of(old) if used and rows.room != old else 0
        alive.add(rows)
        peaks.append(moving + sum(one.bytes_of(one.room) for one in alive))

    monkeypatch.setattr(Rows, "reserve", watched)
    longest = ask(99, rules=RULES * 20)
    asked = [*MIXED[:12], longest, *MIXED[12:]]
    asked += [replace(one, adapter="whole@1") for one in MIXED[:6]]

    def all_of_it(**changes: Any) -> list[Any]:
        decoder = decoder_of(model_folder, **changes)
        peaks.clear()
        decoder.model.publish("whole@1", str(full_folder))
        return complete(decoder, asked)

    free = all_of_it()
    assert max(peaks) > 1 << 20
    bound = all_of_it(kv_cache_mb=1)
    alone = [peak for peak in peaks if peak > 1 << 20]
    # The one that is too long by itself has the memory to itself.
    assert len(alone) == 1 and len(bound[12].prompt_ids) * 1024 > 1 << 20
    assert len(peaks) > 3
    for one, other in zip(free, bound, strict=True):
        assert one.token_ids == other.token_ids and one.finish_reason == other.finish_reason


def test_a_folder_that_is_not_there_is_never_taken_for_a_name(tmp_path: Path) -> None:
    from agents.policy.local_model import LocalModel

    for name in (str(tmp_path / "none"), "gpt2"):
        for load in (ChatTokenizer, lambda name: LocalModel(settings(name))):
            with pytest.raises(BadModel, match=rf"^model '{name}': no such folder$"):
                load(name)


@pytest.mark.parametrize("damage", ["none", "config", "weights", "template", "no system"])
def test_models_that_cannot_be_loaded_are_one_line(damage: str, full_folder: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "m"
    if damage != "none":
        shutil.copytree(full_folder, folder)
    match damage:
        case "config":
            (folder / "config.json").write_text("{}")
        case "weights":
            (folder / "model.safetensors").write_bytes(b"nothing")
        case "template":
            (folder / "chat_template.jinja").unlink()
        case "no system":
            (folder / "chat_template.jinja").write_text(
                "{% if messages[0].role == 'system' %}{{ raise_exception('no system\nrole') }}{% endif %}"
            )
    with pytest.raises(BadModel) as caught:
        decoder_of(folder)
    assert "\n" not in str(caught.value)
