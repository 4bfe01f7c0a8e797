"""What a language model would lose to a best response in a small game, computed exactly.

At every information state of both seats the model is shown the very prompt that a match would show, and the
probabilities of all allowed answers are read off, whatever the ways of spelling them; nothing is sampled.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agents.base import Seat
from agents.errors import NotSolvable
from agents.exploitability import information_states, nash_conv
from agents.policy.agent import GenerationSettings
from agents.policy.chat import ChatTokenizer
from agents.policy.tokens import PromptTokens
from agents.prompting.answers import constraint_of, parse_answer
from agents.prompting.parse import Answer
from agents.prompting.prompter import Prompter
from games.base import Game

Probabilities = dict[str, list[float]]
"""By the key of an information state, the probabilities of its actions."""


class Scorer(Protocol):
    """Whatever knows the probabilities of a model's answers: a `Learner` does."""

    def probabilities(
        self,
        asked: Sequence[tuple[Sequence[int], Sequence[str]]],
        *,
        temperature: float = 1.0,
        averaged: bool = False,
    ) -> list[list[float]]:
        """Return, for each prompt and its choices, the probability of each choice."""


def policy_table(
    scorer: Scorer,
    game: Game,
    *,
    tokenizer: ChatTokenizer,
    playing: GenerationSettings,
    context_tokens: int,
    options: Mapping[str, Any] | None = None,
    averaged: bool = False,
) -> Probabilities:
    """Return the probabilities of the actions at every information state.

    Args:
        scorer: the model.
        game: small, for two seats, zero-sum.
        tokenizer: of the model.
        playing: how it plays; the temperature counts.
        context_tokens: of the model, for the prompts' budget.
        options: of the game.
        averaged: ask the averaged weights.

    Raises `NotSolvable`, also where the model thinks before it answers: then no prompt is fixed.
    """
    if playing.mode != "direct" or playing.temperature <= 0 or playing.top_p < 1:
        raise NotSolvable(
            f"{game.name}: exact play needs direct answers at a temperature above 0 with top-p 1, got mode "
            f"{playing.mode}, temperature {playing.temperature:g}, top-p {playing.top_p:g}"
        )
    parsed = game.parse_options(options)
    tokens = PromptTokens(tokenizer)
    asked, places = [], []
    for state in information_states(game, options=parsed):
        prompter = Prompter(
            Seat(game, 2, parsed, state.seat, 0),
            style=playing.style,
            budget_tokens=playing.budget(context_tokens),
            count=tokenizer.count,
        )
        prompter.observe(state.events)
        constraint = constraint_of(state.space)
        choices = None if constraint is None else constraint.choices
        if not choices:
            raise NotSolvable(
                f"{game.name}: {state.space.describe()[:80]} is not answered by one of some choices"
            )
        asked.append((tokens.ids(prompter.messages(state.turn(), want="action")), tuple(choices)))
        places.append(state)
    table: Probabilities = {}
    for state, (_, choices), found in zip(
        places,
        asked,
        scorer.probabilities(asked, temperature=playing.temperature, averaged=averaged),
        strict=True,
    ):
        row = [0.0] * len(state.actions)
        for text, probability in zip(choices, found, strict=True):
            answer = parse_answer(state.space, text)
            assert isinstance(answer, Answer)
            row[state.actions.index(answer.action)] += probability
        total = sum(row)
        table[state.key] = [one / total for one in row]
    return table


def mean_table(tables: Sequence[Probabilities]) -> Probabilities:
    """Return the mean of some policies, state by state."""
    return {
        key: [sum(values) / len(tables) for values in zip(*(table[key] for table in tables), strict=True)]
        for key in tables[0]
    }


def table_nash_conv(game: Game, table: Probabilities, *, options: Mapping[str, Any] | None = None) -> float:
    """Return what both seats could gain by responding best to a policy; see `agents.exploitability.nash_conv`."""
    return nash_conv(game, lambda state: table[state.key], options=game.parse_options(options))
