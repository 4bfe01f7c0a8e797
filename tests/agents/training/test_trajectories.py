from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agents.errors import BadRollout
from agents.training.trajectories import harvest
from games.referee import Entry, Input, Referee
from games.registry import load_game
from replays.record import Footer, Header, Record, SeatInfo


def trace(*, mode: str = "direct", tokens: Iterable[int] = (7, 8), **changes: Any) -> dict[str, Any]:
    ids = list(tokens)
    return {
        "prompt_ids": [1, 2, 3],
        "token_ids": ids,
        "logprobs": [-0.5] * len(ids),
        "adapter": "a@2",
        "mode": mode,
        "temperature": 0.7,
        "top_p": 0.9,
    } | changes


def kuhn(*given: Input, retries: int = 1, seed: int = 3, match: str = "m") -> Record:
    """Return the record of the hand that these inputs play."""
    game = load_game("kuhn")
    state = game.new(seed=seed)
    referee = Referee(state, retries=retries)
    entries: list[Entry] = [*referee.opening()]
    for one in given:
        entries += referee.feed(one)
    header = Header(
        "kuhn", game.version, {}, seed, (SeatInfo("me", "policy"), SeatInfo("you", "random")), retries, match
    )
    outcome = referee.outcome()
    footer = None
    if outcome is not None:
        ended = tuple(referee.ended(seat) for seat in range(2))
        footer = Footer(outcome, ended, dict(referee.counts))
    return Record(header, entries, footer=footer)


def test_a_seat_gives_one_trajectory_across_its_turns() -> None:
    record = kuhn(
        Input(0, 0, "check", trace=trace()),
        Input(1, 1, "bet"),
        Input(0, 2, "fold", trace=trace(tokens=(9,))),
    )
    (one,) = harvest(record, stratum="against bots")
    assert (one.match, one.game, one.seats, one.seat, one.role, one.player) == (
        "m",
        "kuhn",
        2,
        0,
        "first",
        "me",
    )
    assert (one.adapter, one.outcome, one.causes, one.stratum) == ("a@2", -1.0, {}, "against bots")
    assert [(step.ply, step.kind, step.token_ids) for step in one.steps] == [
        (0, "action", (7, 8)),
        (2, "action", (9,)),
    ]
    assert [step.constraint.choices for step in one.steps if step.constraint] == [
        ("check", "bet"),
        ("fold", "call"),
    ]
    first = one.steps[0]
    assert (first.prompt_ids, first.logprobs, first.temperature, first.top_p) == (
        (1, 2, 3),
        (-0.5, -0.5),
        0.7,
        0.9,
    )


def test_deals_are_told_by_what_they_share() -> None:
    def deal(**changes: Any) -> tuple[str, str]:
        (one,) = harvest(kuhn(Input(0, 0, "bet", trace=trace()), Input(1, 1, "fold"), **changes))
        return one.deal, one.options

    assert deal() == deal(match="other")
    other = deal(seed=4)
    assert other[0] != deal()[0] and other[1] == deal()[1]


def test_who_is_trained_can_be_named() -> None:
    record = kuhn(Input(0, 0, "bet", trace=trace()), Input(1, 1, "fold"))
    assert [one.player for one in harvest(record)] == ["me"]
    (you,) = harvest(record, players=["you"])
    assert (you.player, you.steps, you.outcome, you.causes) == ("you", (), -1.0, {"no_tokens": 1})
    assert harvest(record, players=[]) == []


def test_thoughts_are_learned_from_too() -> None:
    thought = {"prompt_ids": [4], "token_ids": [5, 6], "logprobs": [-1.0, -2.0]}
    record = kuhn(Input(0, 0, "bet", trace=trace(mode="two", thought=thought)), Input(1, 1, "fold"))
    (one,) = harvest(record)
    assert [(step.kind, step.token_ids, step.constraint is None) for step in one.steps] == [
        ("thought", (5, 6), True),
        ("action", (7, 8), False),
    ]
    (both,) = harvest(kuhn(Input(0, 0, "bet", trace=trace(mode="one")), Input(1, 1, "fold")))
    assert [(step.kind, step.constraint) for step in both.steps] == [("both", None)]


def test_advice_is_stripped_from_what_is_trained_on() -> None:
    given = trace(plain_prompt_ids=[3])
    (one,) = harvest(kuhn(Input(0, 0, "bet", trace=given), Input(1, 1, "fold")))
    assert [(step.prompt_ids, step.stripped) for step in one.steps] == [((3,), True)]


def test_failed_answers_are_data_with_a_cause() -> None:
    record = kuhn(
        Input(0, 0, failure="unparsed", trace=trace(tokens=(1,))),
        Input(0, 0, "raise", trace=trace(tokens=(2,))),  # no such move, and no retry is left
        Input(1, 1, "bet"),
        Input(0, 0, "check", trace=trace()),  # too late
        Input(0, 2, failure="timeout"),
    )
    (one,) = harvest(record)
    assert [(step.attempt, step.failure, step.forced) for step in one.steps] == [
        (0, "unparsed", False),
        (1, "illegal", True),
    ]
    assert one.causes == {"unparsed": 1, "illegal": 1, "forced": 2, "late": 1, "timeout": 1}
    assert one.failures == 3


def test_a_forfeit_is_a_cause() -> None:
    record = kuhn(Input(0, 0, "check", trace=trace()), Input(0, 1, failure="forfeit"), Input(1, 1, "bet"))
    (one,) = harvest(record)
    assert one.causes == {"forfeit": 1} and len(one.steps) == 1


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ({"logprobs": [-0.5]}, "bad_trace"),
        ({"logprobs": [-0.5, float("nan")]}, "bad_trace"),
        ({"prompt_ids": []}, "bad_trace"),
        ({"token_ids": ["a", "b"]}, "bad_trace"),
        ({"top_p": 0.0}, "bad_trace"),
        ({"temperature": 0.0}, "greedy"),
        ({"token_ids": []}, "no_tokens"),
    ],
)
def test_what_cannot_be_learned_from_is_counted(bad: dict[str, Any], cause: str) -> None:
    record = kuhn(Input(0, 0, "bet", trace=trace(**bad)), Input(1, 1, "fold"))
    (one,) = harvest(record, players=["me"])
    assert (one.steps, one.causes) == ((), {cause: 1})


def test_records_that_nothing_can_be_learned_from_are_refused_in_one_line() -> None:
    whole = kuhn(Input(0, 0, "bet", trace=trace()), Input(1, 1, "fold"))
    with pytest.raises(BadRollout, match=r"^match m: its record was cut short, and has no outcome$"):
        harvest(kuhn(Input(0, 0, "bet", trace=trace())))
    other = replace(whole, header=replace(whole.header, rules="0"))
    with pytest.raises(BadRollout, match=r"^match m: recorded under kuhn rules 0, installed are rules 1$"):
        harvest(other)
    assert whole.footer is not None
    outcome = whole.footer.outcome._replace(returns=(5.0, -5.0))
    with pytest.raises(BadRollout, match="its outcome is not what the rules give"):
        harvest(replace(whole, footer=replace(whole.footer, outcome=outcome)))
    odd = [Input(7, 0, "bet") if isinstance(one, Input) else one for one in whole.entries]
    with pytest.raises(BadRollout, match=r"^match m: [^\n]+$"):
        harvest(replace(whole, entries=odd))
