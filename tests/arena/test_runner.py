import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import arena.runner
from agents.base import Agent, Decision, Seat
from arena.report import MatchReport
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from games.base import Event
from games.referee import Turn
from games.registry import load_game
from games.rng import derive_seed
from replays.errors import RecordWriteFailed
from replays.reader import read_record
from replays.record import Header
from replays.verify import verify_file
from replays.writer import RecordWriter
from tests.replays.recording import header


def job(
    record: Path | None = None, *, game: str = "kuhn", seats: int = 2, seed: int = 0, **changes: Any
) -> MatchJob:
    plan = MatchPlan(0, game, seed, 0, 0, ("a", "b") * (seats // 2) + ("a",) * (seats % 2))
    made = MatchJob("id-0", plan, seats, {"a": "scripted", "b": "random"}, record=record)
    return replace(made, **changes)


def run(given: MatchJob) -> MatchReport:
    with asyncio.Runner() as loop:
        return run_match(given, loop=loop)


@pytest.mark.parametrize(("game", "seats"), [("kuhn", 2), ("avalon", 5), ("werewolf", 8)])
def test_a_job_gives_the_same_record_each_time_and_it_verifies(tmp_path: Path, game: str, seats: int) -> None:
    one, two = (run(job(tmp_path / name, game=game, seats=seats, seed=3)) for name in ("one", "two"))
    assert one.error is None
    assert replace(one, record=None) == replace(two, record=None)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert one.record_bytes == (tmp_path / "one").stat().st_size
    assert verify_file(tmp_path / "one").ok
    header = read_record(tmp_path / "one").header
    assert (header.game, header.seed, header.match, header.retries) == (game, 3, "id-0", 2)
    assert [seat.name for seat in header.seats] == ["a", "b"] * (seats // 2) + ["a"] * (seats % 2)
    assert {seat.spec for seat in header.seats} == {"scripted", "random"}
    assert all(seat.agent for seat in header.seats)


def test_the_report_is_what_the_record_says(tmp_path: Path) -> None:
    report = run(job(tmp_path / "r", game="avalon", seats=5, seed=11))
    footer = read_record(tmp_path / "r").footer
    assert footer is not None
    assert report.outcome() == footer.outcome
    assert [seat.ended for seat in report.seats] == list(footer.ended)
    assert report.counts == footer.counts


def test_players_by_side_sit_where_the_deal_puts_their_side(tmp_path: Path) -> None:
    game = load_game("avalon")
    for seed in range(6):
        plan = MatchPlan(0, "avalon", seed, 0, 0, None, (("good", "a"), ("evil", "b")))
        report = run(job(None, game="avalon", seats=5, plan=plan))
        teams = game.new(seed=seed, seats=5).teams()
        assert [(seat.player, seat.team) for seat in report.seats] == [
            ("a" if team == "good" else "b", team) for team in teams
        ]


def test_matches_of_one_deal_share_cards_and_not_the_whims_of_players() -> None:
    seeds = {derive_seed(5, "agent", match, seat) for match in ("id-0", "id-1") for seat in range(2)}
    assert len(seeds) == 4
    plans = [job(None, seed=1, match=f"id-{i}", players={"a": "random", "b": "random"}) for i in range(40)]
    reports = [run(plan) for plan in plans]
    assert len({tuple(seat.value for seat in report.seats) for report in reports}) > 1


def test_a_record_that_is_there_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = job(tmp_path / "r", game="werewolf", seats=7)
    first = run(given)

    async def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("played again")

    monkeypatch.setattr(arena.runner, "play", refuse)
    assert run(given) == first


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "other match", "other players", "other seed"])
def test_a_record_that_is_not_the_jobs_is_played_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "r"
    given = job(path, seed=4)
    run(given)
    whole = path.read_bytes()
    match damage:
        case "torn":
            path.write_bytes(whole[:-20])
        case "flipped":
            path.write_bytes(whole[:-60] + bytes([whole[-60] ^ 1]) + whole[-59:])
        case "empty":
            path.write_bytes(b"")
        case _:
            path.unlink()
            other = {
                "other match": replace(given, match="id-9"),
                "other players": replace(given, players={"a": "random", "b": "random"}),
                "other seed": replace(given, plan=replace(given.plan, seed=5)),
            }[damage]
            run(other)
    assert path.read_bytes() != whole
    assert run(given).error is None
    assert path.read_bytes() == whole


class _Waiting(Agent):
    """Waits for the loop, so that a record is written as the match goes."""

    def observe(self, events: Any) -> None:
        pass

    async def act(self, turn: Turn) -> Decision:
        await asyncio.sleep(0)
        return Decision(turn.space.default, thought="hm")


def test_matches_that_wait_are_written_as_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena.runner, "make_agent", lambda spec, seat: _Waiting(seat))
    (tmp_path / "r").write_bytes(b"left by a crash")
    report = run(job(tmp_path / "r"))
    assert report.error is None
    assert verify_file(tmp_path / "r").ok
    assert report.counts["turns"] == sum(
        not isinstance(e, Event) for e in read_record(tmp_path / "r").entries
    )


def test_what_goes_wrong_in_a_match_is_a_report_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: str, seat: Seat) -> Agent:
        raise RuntimeError("no weights\nat all")

    assert run(job(game="chess")).error == "game: got 'chess', known are avalon, forge, kuhn, werewolf"
    assert run(job(seats=3)).error is not None
    assert "equilibrium plays kuhn" in str(
        run(job(None, game="avalon", seats=5, players={"a": "equilibrium", "b": "random"})).error
    )
    monkeypatch.setattr(arena.runner, "make_agent", broken)
    assert run(job()).error == "RuntimeError: no weights\\nat all"


def test_an_agent_that_raises_costs_its_turns_and_not_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(_Waiting):
        instant = True

        async def act(self, turn: Turn) -> Decision:
            raise ValueError("oh")

    monkeypatch.setattr(arena.runner, "make_agent", lambda spec, seat: Broken(seat))
    report = run(job())
    assert report.error is None
    assert report.counts["forced"] == report.counts["turns"] == report.counts["error"]


def test_a_full_disk_ends_the_run_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RecordWriteFailed, match="cannot write the record: No space left on device"):
        run(job(tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []


def test_counts_of_a_seat_survive_being_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Illegal(_Waiting):
        instant = True

        async def act(self, turn: Turn) -> Decision:
            return Decision("nonsense")

    monkeypatch.setattr(
        arena.runner, "make_agent", lambda spec, seat: (Illegal if seat.seat else _Waiting)(seat)
    )
    first = run(job(tmp_path / "r"))
    again = run(job(tmp_path / "r"))
    assert again == first
    assert first.seats[1].counts["illegal"] > 0 and first.seats[0].counts.get("illegal", 0) == 0
    json.dumps(first.seats[1].counts)


def test_a_match_that_is_called_off_while_its_record_is_opened_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    opened: list[RecordWriter] = []

    def slow(path: Path, header: Header) -> RecordWriter:
        begun.set()
        go.wait()
        opened.append(RecordWriter(path, header))
        return opened[0]

    async def main() -> None:
        opening = asyncio.create_task(arena.runner._opened(tmp_path / "r.arena", header("kuhn")))
        await asyncio.to_thread(begun.wait)
        opening.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await opening

    monkeypatch.setattr(arena.runner, "_open", slow)
    asyncio.run(main())
    (writer,) = opened
    assert writer._file.closed
