import math
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from agents.bots.kuhn import EquilibriumBot
from agents.errors import NotSolvable
from agents.exploitability import agent_policy, information_states, nash_conv, uniform_policy
from agents.policy.agent import GenerationSettings
from agents.policy.chat import ChatTokenizer
from agents.policy.presets import tiny_folder
from agents.training.exact import mean_table, policy_table, table_nash_conv
from agents.training.fresh import make_fresh
from agents.training.learner import Learner
from agents.training.settings import LearnerSettings
from games.registry import load_game

KUHN = load_game("kuhn")
PLAYING = GenerationSettings(style="compact")


class Equal:
    """Gives every choice the same probability."""

    def probabilities(
        self,
        asked: Sequence[tuple[Sequence[int], Sequence[str]]],
        *,
        temperature: float = 1.0,
        averaged: bool = False,
    ) -> list[list[float]]:
        self.asked = [tuple(prompt) for prompt, _ in asked]
        return [[1 / len(choices)] * len(choices) for _, choices in asked]


def test_an_even_policy_is_as_far_from_perfect_as_is_known() -> None:
    scorer = Equal()
    tokenizer = ChatTokenizer(tiny_folder())
    table = policy_table(scorer, KUHN, tokenizer=tokenizer, playing=PLAYING, context_tokens=1024)
    assert len(set(scorer.asked)) == len(information_states(KUHN)) == 12, "each state has a prompt of its own"
    assert table_nash_conv(KUHN, table) == pytest.approx(nash_conv(KUHN, uniform_policy))


def test_the_mean_of_policies_is_by_state() -> None:
    perfect = agent_policy(KUHN, EquilibriumBot)
    one = {state.key: list(perfect(state)) for state in information_states(KUHN)}
    other = {state.key: [0.5, 0.5] for state in information_states(KUHN)}
    mean = mean_table([one, other])
    assert all(math.isclose(sum(row), 1) for row in mean.values())
    assert table_nash_conv(KUHN, one) == pytest.approx(0, abs=1e-9)
    assert 0 < table_nash_conv(KUHN, mean) < table_nash_conv(KUHN, other)


def test_the_shipped_model_plays_nearly_as_the_bot_it_learnt_from() -> None:
    learner = Learner(tiny_folder(), settings=LearnerSettings(weights="all", device="cpu", threads=1))
    tokenizer = ChatTokenizer(tiny_folder())
    table = policy_table(learner, KUHN, tokenizer=tokenizer, playing=PLAYING, context_tokens=1024)
    assert all(math.isclose(sum(row), 1) for row in table.values())
    assert table_nash_conv(KUHN, table) < 0.2


@pytest.mark.parametrize(
    "playing",
    [GenerationSettings(mode="one"), GenerationSettings(temperature=0.0), GenerationSettings(top_p=0.9)],
)
def test_what_is_no_fixed_policy_is_refused(playing: GenerationSettings) -> None:
    tokenizer = ChatTokenizer(tiny_folder())
    with pytest.raises(NotSolvable, match="exact play needs direct answers"):
        policy_table(Equal(), KUHN, tokenizer=tokenizer, playing=playing, context_tokens=1024)


def test_a_game_that_is_too_large_is_refused() -> None:
    tokenizer = ChatTokenizer(tiny_folder())
    with pytest.raises(NotSolvable):
        policy_table(Equal(), load_game("avalon"), tokenizer=tokenizer, playing=PLAYING, context_tokens=1024)


def test_fresh_weights_follow_from_the_seed_and_play_like_the_tiny_model(tmp_path: Path) -> None:
    from agents.policy.presets import preset_of

    shape = {"tokenizer": tiny_folder(), "hidden": 32, "layers": 1}
    one = make_fresh(tmp_path / "a" / "model", seed=1, **shape)  # type: ignore[arg-type]
    same = make_fresh(tmp_path / "b" / "model", seed=1, **shape)  # type: ignore[arg-type]
    other = make_fresh(tmp_path / "c" / "model", seed=2, **shape)  # type: ignore[arg-type]
    weights = [(path / "model.safetensors").read_bytes() for path in (one, same, other)]
    assert weights[0] == weights[1] != weights[2]
    assert preset_of(str(one)).style == "compact"
    before = (one / "model.safetensors").stat().st_mtime_ns
    assert make_fresh(one, seed=9, **shape) == one  # type: ignore[arg-type]
    assert (one / "model.safetensors").stat().st_mtime_ns == before, "what is there is left alone"
    learner = Learner(one, settings=LearnerSettings(weights="all", device="cpu", threads=1))
    table = policy_table(learner, KUHN, tokenizer=ChatTokenizer(one), playing=PLAYING, context_tokens=1024)
    assert 0.5 < table_nash_conv(KUHN, table) < 1.6
