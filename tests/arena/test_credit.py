"""Credit of many records: who is accused, what is skipped, and how the methods agree."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.base import Agent, Bot, Decision, Seat
from agents.errors import BadCredit
from agents.players import make_agent
from arena.credit import (
    CreditRequest,
    credit_board,
    credit_many,
    credit_one,
    find_records,
    usual_reference,
)
from arena.credit_agreement import agreement, correlation
from arena.results import RatedMatch, RatedSeat
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from arena.standings import leaderboard
from games.referee import Turn
from games.registry import load_game
from replays.errors import NotARecord, RecordUnreadable
from replays.reader import read_record

RELAY = {"mode": "relay", "rounds": 1}


class Idle(Bot):
    """Plays every default."""

    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.default)


def make(spec: str, seat: Seat) -> Agent:
    return Idle(seat) if spec == "idle" else make_agent(spec, seat)


def relays(folder: Path, count: int, players: dict[str, str]) -> list[Path]:
    """Play relays in which the players sit in turn at every seat."""
    rules, names = load_game("forge"), list(players)
    options = rules.parse_options(RELAY).model_dump(mode="json")
    paths = []
    with asyncio.Runner() as loop:
        for number in range(count):
            seated = tuple(names[(seat + number) % 4] for seat in range(4))
            plan = MatchPlan(number, "forge", number, number, 0, seated)
            job = MatchJob(str(number), plan, 4, players, options, record=folder / f"{number:02}.arena")
            assert run_match(job, loop=loop, make=make).error is None
            assert job.record is not None
            paths.append(job.record)
    return paths


def test_a_free_rider_is_found_and_nobody_else(tmp_path: Path) -> None:
    players = {"a": "scripted", "b": "scripted", "c": "scripted", "x": "idle"}
    paths = relays(tmp_path, 16, players)
    seen: list[tuple[int, int]] = []
    many = credit_many(
        paths,
        CreditRequest(method="leave-one-out"),
        make=make,
        progress=lambda done, all_: seen.append((done, all_)),
    )
    assert seen[-1] == (16, 16)
    assert many.reference == "scripted"
    assert {row.player: row.accusation for row in many.players if row.accusation} == {"x": "free rider"}
    assert [row.matches for row in many.players] == [16] * 4
    assert len(many.credits) == 32 and not many.skipped
    data = many.as_dict()
    assert data["players"][-1]["player"] == "x"
    assert data["matches"][0]["file"] == str(paths[0]) and data["matches"][0]["steps"] == []
    # The board of the same matches shows it.
    seats = tuple(
        RatedSeat(name, f"t{i % 2}", "smith", 1.0 if i % 2 else -1.0) for i, name in enumerate(players)
    )
    board = leaderboard([RatedMatch("forge", seats, 1)])
    assert board.credit == "equal"
    assert {row.player: row.credit for row in board.standings} == {"a": -0.5, "b": 0.5, "c": -0.5, "x": 0.5}
    shown = credit_board(board, many)
    assert shown.credit == "leave-one-out"
    (row,) = [row for row in shown.standings if row.player == "x"]
    assert row.accusation == "free rider" and row.credit is not None and row.credit < -0.2
    assert row.as_dict()["credit"] == row.credit


def test_what_cannot_be_credited_is_skipped_and_said(tmp_path: Path) -> None:
    good, cut, other = relays(
        tmp_path, 3, {"a": "scripted", "b": "scripted", "c": "scripted", "d": "scripted"}
    )
    cut.write_bytes(cut.read_bytes()[:-200])
    other.write_bytes(b"nothing")
    with pytest.raises(NotARecord, match=str(other)):
        credit_one(other, CreditRequest(method="equal"))
    many = credit_many([good, cut, other], CreditRequest(method="equal"))
    assert [path for path, _ in many.skipped] == [cut, other]
    other.unlink()
    assert str(many.skipped[0][1]).startswith(f"{cut}: the record is cut short")
    assert all(row.accusation is None and row.p is None for row in many.players)
    with pytest.raises(BadCredit, match="team: got 'green', these matches have blue, red"):
        credit_many([good], CreditRequest(method="equal", team="green"))
    assert find_records([tmp_path]) == [good, cut]
    with pytest.raises(RecordUnreadable, match="holds no record"):
        (tmp_path / "empty").mkdir()
        find_records([tmp_path / "empty"])


def test_one_record_is_credited_with_its_steps(tmp_path: Path) -> None:
    (path,) = relays(tmp_path, 1, {"a": "scripted", "b": "scripted", "c": "scripted", "d": "scripted"})
    credit = credit_one(path, CreditRequest(settings={"most": 1, "step_replicates": 1}))
    assert (credit.team, credit.method) == ("red", "shapley")
    assert credit.steps and {step.seat for step in credit.steps} == {0, 2}
    record = read_record(path)
    assert credit.result == pytest.approx(record.footer.outcome.returns[0] if record.footer else None)


def test_the_usual_reference_plays_the_game() -> None:
    assert usual_reference("avalon") == "scripted"
    assert usual_reference("chess") == "random"


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(BadCredit, match="credit method: got 'guess', allowed are equal, leave-one-out"):
        CreditRequest(method="guess")


def test_methods_are_ranked_beside_shapley(tmp_path: Path) -> None:
    paths = relays(tmp_path, 4, {"a": "scripted", "b": "idle", "c": "scripted", "d": "idle"})

    def request(method: str) -> CreditRequest:
        settings: dict[str, Any] = {"most": 2} if method != "equal" else {}
        return CreditRequest(method=method, reference="scripted", settings=settings)

    found = agreement(paths, request, methods=("shapley", "leave-one-out", "equal"), make=make)
    by_name = {row.method: row for row in found.methods}
    assert (found.teams, found.seats) == (8, 16)
    assert (by_name["shapley"].spearman, by_name["shapley"].kendall) == pytest.approx((1.0, 1.0))
    assert by_name["leave-one-out"].replays < by_name["shapley"].replays
    assert by_name["equal"].spearman is None and by_name["equal"].replays == 0
    assert found.as_dict()["methods"][0]["method"] == "shapley"


def test_rank_correlation_by_hand() -> None:
    assert correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == pytest.approx((1.0, 1.0))
    assert correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx((-1.0, -1.0))
    assert correlation([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]) == pytest.approx((0.8, 2 / 3))
    assert correlation([1.0, 1.0 + 1e-12], [1.0, 2.0]) is None
    assert correlation([1.0], [1.0]) is None
