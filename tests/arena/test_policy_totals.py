"""What a model did in a run: summed up from what its engine and queue counted."""

import json

import pytest

from arena.policy_totals import PolicyTotals

FACTS = {
    "queue_requests": 200.0,
    "queue_failures": 0.0,
    "queue_cancelled": 0.0,
    "queue_queue_s": 3.0,
    "queue_waiting": 7.0,
    "engine_prompt_tokens": 40_000.0,
    "engine_cached_tokens": 30_000.0,
    "engine_completion_tokens": 900.0,
    "engine_restarts": 0.0,
}


def test_totals_are_read_from_the_counts() -> None:
    totals = PolicyTotals.of(FACTS)
    assert (totals.cached_share, totals.mean_queue_s) == (0.75, 0.015)
    told = totals.as_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["requests"] == 200 and told["queue_s"] == pytest.approx(3.0) and "waiting" not in told
    assert totals.line() == (
        "200 requests; 40,000 prompt tokens, 75% of them cached; 900 drawn; 15 ms waited on average"
    )


def test_what_goes_wrong_and_what_costs_is_told_where_there_is_any() -> None:
    more = {"queue_failures": 3.0, "queue_cancelled": 2.0, "engine_restarts": 1.0, "engine_cost": 0.125}
    line = PolicyTotals.of(FACTS | more).line()
    for text in ("3 failed", "2 taken back", "restarted 1 times", "cost 0.125"):
        assert text in line


def test_an_engine_that_was_asked_nothing() -> None:
    totals = PolicyTotals.of({})
    assert (totals.requests, totals.cached_share, totals.mean_queue_s) == (0, 0.0, 0.0)
    assert totals.line().startswith("0 requests; 0 prompt tokens, 0% of them cached")
