"""The embedded model: what it weighs, what it says of itself, and that it plays."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.base import Seat
from agents.match import MatchResult, play
from agents.policy.chat import ChatTokenizer
from agents.policy.presets import TINY, tiny_folder
from agents.policy.pretrain.matches import GAMES, plans
from agents.policy.pretrain.matches import play as play_scripted
from agents.policy.pretrain.run import prompt_versions
from agents.policy.pretrain.words import count_words
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from games.referee import Referee
from games.registry import load_game

MAX_BYTES = 8 * 1000 * 1000


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    """The embedded model's tokenizer."""
    return ChatTokenizer(tiny_folder())


@pytest.fixture(scope="module")
def provenance() -> Any:
    """What the embedded model says of itself."""
    return json.loads((tiny_folder() / "provenance.json").read_text(encoding="utf-8"))


def test_it_is_small_and_is_what_its_provenance_says(provenance: Any) -> None:
    weights = (tiny_folder() / "model.safetensors").read_bytes()
    assert sum(path.stat().st_size for path in tiny_folder().iterdir()) <= MAX_BYTES
    assert len(weights) == provenance["model"]["weights_bytes"]
    assert hashlib.sha256(weights).hexdigest() == provenance["model"]["weights_sha256"]
    assert 1_000_000 <= provenance["model"]["parameters"] <= 3_000_000


def test_it_was_made_for_the_prompts_that_are_used(provenance: Any) -> None:
    assert provenance["prompts"] == prompt_versions(), "raise the templates' numbers and pretrain anew"
    assert provenance["command"].startswith("arena policy pretrain --matches ")
    assert len(provenance["data"]["sha256"]) == 64 and len(provenance["curve"]) > 4
    assert {kind.split()[0] for kind in provenance["data"]["decisions"]} == set(GAMES)
    assert {row["kind"] for row in provenance["held_out"]} <= set(provenance["data"]["decisions"])


def test_it_loads_with_as_many_parameters_as_stated(provenance: Any, tokenizer: ChatTokenizer) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_folder())
    assert sum(p.numel() for p in model.parameters()) == provenance["model"]["parameters"]
    assert model.config.vocab_size == len(tokenizer.inner) == provenance["model"]["vocabulary"]
    assert model.config.head_dim in (32, 64) and model.config.max_position_embeddings >= 1024
    assert model.config.tie_word_embeddings


@given(st.text(max_size=60) | st.sampled_from(["<|im_start|>user\nseat 1", "approve, 0", ""]))
def test_text_is_tokenised_as_transformers_does_it(tokenizer: ChatTokenizer, text: str) -> None:
    assert tokenizer.encode(text) == tuple(tokenizer.inner.encode(text, add_special_tokens=False))


def test_its_prompts_are_words_that_it_knows(tokenizer: ChatTokenizer) -> None:
    assert TINY.budget_tokens is not None
    for plan in plans(6, seed=99):
        for sample in play_scripted(plan, budget_tokens=TINY.budget_tokens, count=count_words):
            for text in (*(message.content for message in sample.messages), sample.answer):
                # Numbers up to 12 are words; one beyond (a seat may be suspected 13 times) is spelled, its space too.
                digits = sum(len(number) for number in re.findall(r"\d+", text) if int(number) > 12)
                assert tokenizer.count(text) == count_words(text) + digits, text
            assert len(tokenizer.prompt_ids(sample.messages)) <= TINY.budget_tokens + 8


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """A loop for the module."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def policies(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Policies]:
    """The embedded model, started."""
    home: Path = tmp_path_factory.mktemp("home")
    made = Policies(PolicySettings(threads=1), home=home)
    runner.run(made.start(["policy"]))
    yield made
    runner.run(made.close())


@pytest.mark.parametrize("game", GAMES)
def test_it_plays_every_game_legally_in_all_seats(
    game: str, policies: Policies, runner: asyncio.Runner
) -> None:
    async def matches() -> list[MatchResult]:
        rules = load_game(game)
        played = []
        for seed in range(2):
            state = rules.new(seed=seed)
            seats = (Seat(rules, state.seats, state.options, i, seed * 100 + i) for i in range(state.seats))
            agents = [policies.agent("policy", seat, match=f"{game} {seed}") for seat in seats]
            played.append(play(Referee(state), agents, deadline_s=600))
        return list(await asyncio.gather(*played))

    for result in runner.run(matches()):
        counts = {kind: n for kind, n in result.counts.items() if n}
        assert counts.keys() == {"turns"}, counts
