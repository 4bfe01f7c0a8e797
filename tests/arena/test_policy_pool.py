import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agents.policy.service
from agents.errors import BadModel
from agents.policy.adapters import FOLDER, AdapterStore
from agents.policy.base import Completion, Engine, Request
from agents.policy.settings import PolicySettings
from agents.policy.spec import PolicySpec
from arena.policy_pool import PolicyPool, Pools, has_policy, play_one
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from arena.tournament import run_tournament
from arena.tournament_file import Overrides, read_tournament
from games.referee import Input
from replays.errors import RecordWriteFailed
from replays.reader import read_record
from replays.verify import verify_file
from tests.agents.policy.counting import CountingEngine

LORA_BASE = "counting@0"


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[CountingEngine]:
    """Let policies run on counting engines, and return those that were made."""
    made: list[CountingEngine] = []

    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        made.append(CountingEngine(max_batch=64))
        return made[-1]

    monkeypatch.setattr(agents.policy.service, "make_engine", make)
    return made


@pytest.fixture
def bots_are_loaded() -> None:
    """Play a match among bots, which read their parameters once in a process."""
    with asyncio.Runner() as loop:
        assert (
            run_match(replace(job(), players={"tiny": "scripted", "bots": "scripted"}), loop=loop).error
            is None
        )


def job(number: int = 0, record: Path | None = None, *, spec: str = "policy", **changes: Any) -> MatchJob:
    plan = MatchPlan(number, "avalon", number, 0, 0, ("tiny", "bots") * 2 + ("tiny",))
    made = MatchJob(f"id-{number}", plan, 5, {"tiny": spec, "bots": "scripted"}, record=record)
    return replace(made, **changes)


def test_many_matches_run_at_the_same_time_and_each_is_whole(
    tmp_path: Path, engines: list[CountingEngine], bots_are_loaded: None, no_blocking: None
) -> None:
    jobs = [job(i, tmp_path / f"{i}.arena") for i in range(12)]
    with PolicyPool(PolicySettings(concurrency=4), home=tmp_path) as pool:
        reports = list(pool.run(jobs, specs=["policy"]))
    assert sorted(report.match for report in reports) == sorted(one.match for one in jobs)
    assert [report.error for report in reports] == [None] * 12
    assert not any(report.counts.get("error") for report in reports)
    (engine,) = engines
    assert engine.started == engine.closed == 1
    assert len(set(engine.order[:40])) == 4
    for report in reports:
        assert report.record is not None and verify_file(report.record).ok
        record = read_record(report.record)
        assert {seat.policy for seat in record.header.seats} == {"", "counting@0 on nothing, adapter base"}
        traces = [entry.trace for entry in record.entries if isinstance(entry, Input) and entry.trace]
        assert traces and all(trace["token_ids"] == [3] and trace["logprobs"] == [-0.5] for trace in traces)


def test_no_more_matches_run_than_are_allowed(tmp_path: Path, engines: list[CountingEngine]) -> None:
    seen: set[str] = set()
    most = 0
    with PolicyPool(PolicySettings(concurrency=3), home=tmp_path) as pool:
        for report in pool.run((job(i) for i in range(9)), specs=["policy"]):
            seen.add(report.match)
            most = max(most, len({*engines[0].order} - seen))
    assert most <= 3 and len(seen) == 9


def test_what_goes_wrong_in_one_match_is_its_report_alone(
    tmp_path: Path, engines: list[CountingEngine]
) -> None:
    jobs = [job(0), job(1, spec="policy:none"), job(2, seats=99), job(3)]
    with PolicyPool(PolicySettings(), home=tmp_path) as pool:
        reports = {report.match: report.error for report in pool.run(jobs, specs=["policy"])}
    assert reports["id-0"] is None and reports["id-3"] is None
    assert "adapter: got 'none'" in (reports["id-1"] or "")
    assert "avalon seats: got 99" in (reports["id-2"] or "")


def test_a_slow_engine_costs_its_own_seats_only(tmp_path: Path, engines: list[CountingEngine]) -> None:
    class Silent(CountingEngine):
        async def complete(self, requests: Sequence[Request]) -> list[Any]:
            self.calls.append(list(requests))
            await asyncio.sleep(3600)
            return []

    agents.policy.service.make_engine = lambda spec, settings, model: Silent()  # type: ignore[assignment]
    report = play_one(job(deadline_s=0.02, retries=0), settings=PolicySettings(), home=tmp_path)
    assert report.error is None
    for seat in report.seats:
        timeouts = seat.counts.get("timeout", 0)
        assert (timeouts > 0) == (seat.player == "tiny")
        assert seat.counts.get("forced", 0) == timeouts


def test_a_dead_engine_is_typed_and_the_matches_go_on(tmp_path: Path, engines: list[CountingEngine]) -> None:
    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        engine = CountingEngine()
        engine.dies = lambda: len(engine.calls) > 12
        engines.append(engine)
        return engine

    agents.policy.service.make_engine = make  # type: ignore[assignment]
    settings = PolicySettings(engine_retries=0)
    with PolicyPool(settings, home=tmp_path) as pool:
        pool_reports = pool.run([job(i) for i in range(2)], specs=["policy"])
        reports = list(pool_reports)
    assert all(report.error is None for report in reports)
    assert len(engines) > 1 and all(engine.closed == 1 for engine in engines)
    errors = sum(report.counts.get("error", 0) for report in reports)
    assert errors > 0 and errors == sum(report.counts.get("forced", 0) for report in reports)


def test_an_engine_that_does_not_start_ends_the_run(tmp_path: Path, engines: list[CountingEngine]) -> None:
    class Broken(CountingEngine):
        async def start(self) -> None:
            raise BadModel("no weights")

    agents.policy.service.make_engine = lambda spec, settings, model: Broken()  # type: ignore[assignment]
    with PolicyPool(PolicySettings(), home=tmp_path) as pool, pytest.raises(BadModel, match="no weights"):
        list(pool.run([job()], specs=["policy"]))


def test_a_full_disk_ends_the_run_and_the_engine_is_let_go(
    tmp_path: Path, engines: list[CountingEngine]
) -> None:
    (tmp_path / "file").write_text("")
    with PolicyPool(PolicySettings(), home=tmp_path) as pool, pytest.raises(RecordWriteFailed):
        list(pool.run([job(0), job(1, tmp_path / "file" / "r.arena")], specs=["policy"]))
    assert engines[0].closed == 1


def test_a_record_that_is_there_is_taken_in(tmp_path: Path, engines: list[CountingEngine]) -> None:
    given = job(0, tmp_path / "r.arena")
    first = play_one(given, settings=PolicySettings(), home=tmp_path)
    assert play_one(given, settings=PolicySettings(), home=tmp_path) == first
    assert len(engines[0].calls) > 0 == len(engines[1].calls)
    other = play_one(given, settings=PolicySettings(temperature=0.5), home=tmp_path)
    assert other.error is None and len(engines[2].calls) > 0


def test_an_adapter_published_in_mid_tournament_is_for_new_matches(
    tmp_path: Path, engines: list[CountingEngine]
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "adapter_config.json").write_text("{}")
    store = AdapterStore(tmp_path / FOLDER)
    store.publish("good", made, base=LORA_BASE)
    jobs = [job(i, tmp_path / f"{i}.arena", spec="policy:good") for i in range(6)]
    with PolicyPool(PolicySettings(concurrency=2), home=tmp_path) as pool:
        reports = []
        for report in pool.run(jobs, specs=["policy:good"]):
            reports.append(report)
            if len(reports) == 1:
                store.publish("good", made, base=LORA_BASE)
    used = {}
    for report in reports:
        assert report.record is not None
        record = read_record(report.record)
        answered = {e.trace["adapter"] for e in record.entries if isinstance(e, Input) and e.trace}
        pinned = {seat.policy.rpartition(" ")[2] for seat in record.header.seats if seat.policy}
        assert answered == pinned and len(pinned) == 1
        used[int(report.match.rpartition("-")[2])] = pinned.pop()
    assert used[0] == used[1] == "good@1"
    assert set(used.values()) == {"good@1", "good@2"} and used[5] == "good@2"


def test_bots_among_themselves_need_no_engine(tmp_path: Path, engines: list[CountingEngine]) -> None:
    bots = replace(job(), players={"tiny": "random", "bots": "scripted"})
    assert has_policy(job()) and not has_policy(bots)
    with Pools(1, settings=PolicySettings(), home=tmp_path, specs=["policy", "random"]) as pools:
        assert [report.error for report in pools.run([bots], models=False)] == [None]
        assert engines == [] and pools.facts() == {}
        assert [report.error for report in pools.run([job(1)], models=True)] == [None]
        assert pools.facts()["policy"]["queue_requests"] == len(engines[0].order)
    assert len(engines) == 1


def test_a_tournament_plays_models_beside_bots(tmp_path: Path, engines: list[CountingEngine]) -> None:
    asked = read_tournament(
        None,
        overrides=Overrides(
            games=("avalon", "kuhn"), players=("tiny=policy", "b=scripted", "r=random"), matches=12, seed=5
        ),
    )
    told: list[tuple[int, int]] = []
    result = run_tournament(asked, home=tmp_path, progress=lambda done, planned: told.append((done, planned)))
    assert (result.planned, result.played, result.failed) == (24, 24, 0)
    assert told[-1] == (24, 24)
    records = sorted(result.records.glob("*.arena"))
    assert len(records) == 24 and all(verify_file(path).ok for path in records)
    assert {row["player"] for row in result.as_dict()["standings"]} == {"tiny", "b", "r"}
    (engine,) = engines
    assert len(set(engine.order)) == sum(
        any(seat.spec == "policy" for seat in read_record(path).header.seats) for path in records
    )
    (totals,) = result.policies.values()
    assert totals.requests == sum(map(len, engine.calls)) and totals.failures == totals.cancelled == 0
    assert result.as_dict()["policies"] == {"policy": totals.as_dict()}


def test_a_model_that_does_not_start_ends_a_tournament_before_any_match(
    tmp_path: Path, engines: list[CountingEngine]
) -> None:
    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        raise BadModel("no weights")

    agents.policy.service.make_engine = make
    players = ("b=scripted", "r=random", "tiny=policy")
    asked = read_tournament(
        None, overrides=Overrides(games=("avalon", "kuhn"), players=players, matches=12, seed=5)
    )
    told: list[tuple[int, int]] = []
    with pytest.raises(BadModel, match=r"^no weights$"):
        run_tournament(asked, home=tmp_path, progress=lambda done, planned: told.append((done, planned)))
    assert told == [] and not list(tmp_path.rglob("*.arena"))


def test_a_tournament_of_bots_tells_of_no_models(tmp_path: Path, engines: list[CountingEngine]) -> None:
    over = Overrides(games=("kuhn",), players=("a=random", "b=random"), matches=2)
    result = run_tournament(read_tournament(None, overrides=over), home=tmp_path)
    assert result.policies == {} and result.as_dict()["policies"] == {} and engines == []


def test_matches_of_bots_are_the_same_beside_models(tmp_path: Path, engines: list[CountingEngine]) -> None:
    """Byte for byte: who else plays in the tournament is no part of a match."""
    plain = replace(job(), players={"tiny": "random", "bots": "scripted"})
    for name, specs in (("alone", ["random"]), ("beside", ["random", "policy"])):
        with Pools(1, settings=PolicySettings(), home=tmp_path, specs=specs) as pools:
            list(pools.run([replace(plain, record=tmp_path / name)], models=False))
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "beside").read_bytes()


def test_an_answer_is_what_the_record_says(tmp_path: Path, engines: list[CountingEngine]) -> None:
    class Speaks(CountingEngine):
        def answer(self, given: Request) -> Completion:
            done = super().answer(given)
            return done if given.constraint else replace(done, text="I said so.")

    agents.policy.service.make_engine = lambda spec, settings, model: Speaks()  # type: ignore[assignment]
    report = play_one(job(2, tmp_path / "r.arena"), settings=PolicySettings(), home=tmp_path)
    assert report.record is not None
    said = [
        e.data["text"] for e in read_record(report.record).events() if e.kind == "speech" and "text" in e.data
    ]
    assert "I said so." in said
