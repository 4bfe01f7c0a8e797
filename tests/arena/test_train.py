import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadCheckpoint, CheckpointFailed, NotFinite
from agents.policy.adapters import AdapterStore
from agents.training.learner import Learner
from arena import train_run
from arena.config import Settings
from arena.errors import TrainError, TrainStopped
from arena.train import CHECKPOINTS, RUNS, train
from arena.train_rollouts import LEARNER, OPPONENT, plan
from arena.train_run import TrainRun
from arena.train_state import RUN_FILE
from replays.reader import read_record
from tests.arena.training import SMALL, assert_alike, lines, run, settings, small

pytest.importorskip("torch")


def test_a_run_learns_publishes_and_measures(tmp_path: Path) -> None:
    found = run(small(), tmp_path)
    assert (found.stopped_by, found.progress.update, found.progress.matches) == ("updates", 4, 96)
    assert found.progress.failed == 0
    updates = lines(tmp_path, "update")
    assert [line["update"] for line in updates] == [1, 2, 3, 4]
    for line in updates:
        assert line["trajectories"] == 48 and line["return"] == 0
        assert line["learner"]["tokens"] > 0 and line["learner"]["grad_norm"] > 0
        assert set(line["by_role"]) == {"kuhn first", "kuhn second"}
    assert found.progress.tokens == sum(int(line["learner"]["completion_tokens"]) for line in updates)
    first, last = lines(tmp_path, "evaluation")
    assert 0.5 < first["nash_conv"]["kuhn"] < 2 and last["nash_conv"] != first["nash_conv"]
    store = AdapterStore(tmp_path / "adapters")
    newest = store.resolve("small")
    assert newest.ref == found.version and newest.kind == "full" and newest.parent == "small@4"
    assert len(store.all()) <= 3, "versions that nothing needs are deleted"
    (kept,) = (found.folder / "rollouts").iterdir()
    records = [read_record(path) for path in kept.iterdir()]
    assert len(records) == 24
    assert {seat.name for record in records for seat in record.header.seats} == {LEARNER}
    assert {record.header.seats[0].spec for record in records} == {"policy:small@4"}


def test_the_same_seed_trains_alike(tmp_path: Path) -> None:
    config = small(budget={"updates": 2})
    run(config, tmp_path / "a")
    run(config, tmp_path / "b")
    assert_alike(lines(tmp_path / "a"), lines(tmp_path / "b"))
    run(small(budget={"updates": 2}, seed=4), tmp_path / "c")
    assert lines(tmp_path / "a", "update") != lines(tmp_path / "c", "update")


def test_a_league_meets_bots_and_past_versions_on_both_sides(tmp_path: Path) -> None:
    league = {
        "itself": 0.2,
        "past": 1,
        "bots": 1,
        "opponents": ["random", "equilibrium"],
        "snapshot_every": 1,
        "keep": 2,
    }
    found = run(small(league=league), tmp_path)
    updates = lines(tmp_path, "update")
    met: set[str] = set()
    for line in updates:
        met |= line["met"].keys()
    assert {"random", "equilibrium"} <= met and any(spec.startswith("policy:small@") for spec in met)
    assert set(updates[-1]["league"]) >= {"random", "equilibrium"}
    assert sum(spec.startswith("policy:") for spec in updates[-1]["league"]) == 2
    sides: set[tuple[int, ...]] = set()
    for folder in (found.folder / "rollouts").iterdir():
        for path in folder.iterdir():
            seats = [seat.name for seat in read_record(path).header.seats]
            sides.add(tuple(i for i, name in enumerate(seats) if name == LEARNER))
    assert sides >= {(0,), (1,)}
    kept = {one.ref for one in AdapterStore(tmp_path / "adapters").all()}
    past = {spec.partition(":")[2] for spec in updates[-1]["league"] if spec.startswith("policy:")}
    assert past <= kept, "who is in the league stays on the disk"


def test_bots_play_on_in_replays_for_every_model(tmp_path: Path) -> None:
    config = small(
        budget={"updates": 1},
        start={"weights": "model"},
        games=[{"game": "werewolf", "seats": 5, "options": {"speech_rounds": 0}}],
        rollout={"deals": 1, "plays": 2, "seeds": []},
        league={"itself": 0, "bots": 1, "opponents": ["policy"]},
        credit={
            "method": "shapley",
            "reference": "scripted",
            "stand_in": "scripted",
            "least_replicates": 2,
            "error": 100,
        },
        evaluation={"nash_conv": False},
    )
    run(config, tmp_path)
    (update,) = lines(tmp_path, "update")
    cost = update["judge"]
    assert (cost["matches"], cost["model_calls"], cost["neutral"]) == (1, 0, {})
    assert 2 <= cost["replays"] <= 2 * 15, "each coalition of four but the whole one twice, at the most"


def test_all_matches_of_a_deal_have_one_opponent_and_every_side_is_sat_on(tmp_path: Path) -> None:
    from agents.training.league import League

    config = small(league={"itself": 1, "bots": 1, "opponents": ["random"]})
    planned = plan(config, update=7, spec="policy:x@1", league=League(config.league), folder=tmp_path)
    assert planned == plan(config, update=7, spec="policy:x@1", league=League(config.league), folder=tmp_path)
    by_deal: dict[int, list[Any]] = {}
    for entry in planned:
        by_deal.setdefault(entry.job.plan.deal, []).append(entry)
    assert len(by_deal) == 6
    for entries in by_deal.values():
        assert len({entry.opponent for entry in entries}) == 1
        assert len({entry.job.plan.seed for entry in entries}) == 1
        seatings = {entry.job.plan.seating for entry in entries}
        if entries[0].opponent == "random":
            assert seatings == {(LEARNER, OPPONENT), (OPPONENT, LEARNER)}
        else:
            assert seatings == {(LEARNER, LEARNER)}


KILLS_ITSELF = """
import os, signal, sys
from pathlib import Path

metrics, size, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
sys.argv[1:4] = []
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it

def count(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "write" and metrics.exists():
        if metrics.read_text().count('"kind": "update"') >= size:
            sys.setprofile(None)
            os.kill(os.getpid(), number)

sys.setprofile(count)
import evoke_arena
evoke_arena.main()
"""
"""The command, sent a signal right after so many updates are in its metrics: by no clock."""


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    config = small(budget={"updates": 5}, league={"past": 1, "snapshot_every": 1, "keep": 2})
    run(config, tmp_path / "whole")
    file = tmp_path / "small.toml"
    file.write_text(
        _toml({**SMALL, "budget": {"updates": 5}, "league": {"past": 1, "snapshot_every": 1, "keep": 2}})
    )
    home = tmp_path / "killed"
    env = {**environment, "ARENA_POLICY__THREADS": "1", "ARENA_POLICY__DEVICE": "cpu"}
    arguments = ["train", str(file), "--home", str(home)]
    metrics = home / RUNS / "small" / "metrics.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", KILLS_ITSELF, str(metrics), "3", str(int(signal.SIGKILL)), *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [line["update"] for line in lines(home, "update")] == [1, 2, 3]
    done = subprocess.run(
        [sys.executable, "-m", "evoke_arena", *arguments, "--resume", "--json"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["updates"] == 5
    assert lines(home, "resume")[0]["update"] == 2, "the checkpoint before the kill"
    assert_alike(_but_names(lines(home, "update")), _but_names(lines(tmp_path / "whole", "update")))
    assert_alike(lines(home, "evaluation"), lines(tmp_path / "whole", "evaluation"))
    store = AdapterStore(home / "adapters")
    assert store.resolve("small").ref == json.loads(done.stdout)["adapter"]


def _but_names(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines without the numbers of versions, which a run that was killed gives on."""
    found = []
    for row in rows:
        row = dict(row)
        for key in ("met", "league"):
            if key in row:
                row[key] = sorted(row[key].values())
        found.append(row)
    return found


def _toml(values: dict[str, Any]) -> str:
    """Return decoded TOML as text again, as far as these tests need it."""
    plain = [f"{key} = {_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    tables = [
        f"[{key}]\n" + "\n".join(f"{name} = {_value(one)}" for name, one in value.items())
        for key, value in values.items()
        if isinstance(value, dict)
    ]
    return "\n".join([*plain, *tables]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return (
            "["
            + ", ".join("{" + ", ".join(f"{k} = {_value(v)}" for k, v in one.items()) + "}" for one in value)
            + "]"
        )
    return json.dumps(value)


@pytest.mark.slow
def test_ctrl_c_leaves_with_130_and_keeps_what_was_finished(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(_toml({**SMALL, "checkpoint_every": 100}))
    metrics = tmp_path / RUNS / "small" / "metrics.jsonl"
    done = subprocess.run(
        [
            *(sys.executable, "-c", KILLS_ITSELF, str(metrics), "2", str(int(signal.SIGINT))),
            *("train", str(file), "--home", str(tmp_path)),
        ],
        env={**environment, "ARENA_POLICY__THREADS": "1", "ARENA_POLICY__DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "What was finished is kept" in done.stderr and "Traceback" not in done.stderr
    assert [line["update"] for line in lines(tmp_path, "update")] == [1, 2]
    assert run(small(checkpoint_every=100), tmp_path, resume=True).progress.update == 4
    assert [line["update"] for line in lines(tmp_path, "update")] == [1, 2, 3, 4]


def test_a_disk_that_is_full_at_a_checkpoint_leaves_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Learner.save_state

    def full(learner: Learner, folder: Path) -> None:
        if learner.updates >= 3:
            raise OSError(28, "No space left on device")
        whole(learner, folder)

    config = small(checkpoint_every=1)
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "save_state", full)
        with pytest.raises(
            CheckpointFailed, match=r"checkpoint 3 .*No space left on device.*the last one, 2, is kept"
        ):
            run(config, tmp_path)
    assert run(config, tmp_path, resume=True).progress.update == 4
    run(config, tmp_path / "whole")
    assert_alike(lines(tmp_path, "update"), lines(tmp_path / "whole", "update"))


def test_an_interrupt_keeps_what_was_finished(tmp_path: Path) -> None:
    """Ctrl-C arrives while an update is learned from; that update is finished, and nothing after it."""

    async def interrupted(config: Any, home: Path) -> None:
        def report(line: dict[str, Any]) -> None:
            if line["kind"] == "update" and line["update"] == 1:
                task.cancel()

        task = asyncio.ensure_future(train(config, settings=settings(home), report=report))
        await task

    config = small(checkpoint_every=100)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted(config, tmp_path))
    assert [line["update"] for line in lines(tmp_path, "update")] == [1]
    assert lines(tmp_path, "stop")[-1]["why"] == "interrupted"
    found = run(config, tmp_path, resume=True)
    assert found.progress.update == 4
    run(config, tmp_path / "whole")
    assert_alike(lines(tmp_path, "update"), lines(tmp_path / "whole", "update"))


@pytest.mark.parametrize(
    ("budget", "reached"),
    [({"matches": 40}, "matches"), ({"tokens": 10}, "tokens"), ({"minutes": 1e-6}, "minutes")],
)
def test_a_budget_ends_a_run_between_updates(budget: dict[str, Any], reached: str, tmp_path: Path) -> None:
    config = small().model_copy(update={"budget": type(small().budget)(**budget)})
    found = run(config, tmp_path)
    assert found.stopped_by == reached
    assert found.progress.update == {"matches": 2, "tokens": 1, "minutes": 0}[reached]
    assert lines(tmp_path, "stop")[-1]["why"] == reached


def test_a_run_can_be_given_more_and_says_so_where_it_was_made_otherwise(tmp_path: Path) -> None:
    run(small(budget={"updates": 1}), tmp_path)
    with pytest.raises(TrainError, match="has a run already; --resume goes on with it"):
        run(small(), tmp_path)
    with pytest.raises(TrainError, match="was made with the configuration"):
        run(small(seed=9), tmp_path, resume=True)
    assert run(small(budget={"updates": 2}), tmp_path, resume=True).progress.update == 2
    other = small(budget={"updates": 3}, learner={"lr": 0.001})
    assert run(other, tmp_path, resume=True, adopt=True).progress.update == 3
    assert json.loads((tmp_path / RUNS / "small" / RUN_FILE).read_text())["digest"] == other.digest


@pytest.mark.slow
def test_what_a_checkpoint_names_is_still_there_when_a_run_is_killed_long_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(
        budget={"updates": 6},
        evaluation={"every": 2},
        checkpoint_every=2,
        league={"past": 1, "snapshot_every": 1, "keep": 1},
    )
    saved = TrainRun.save

    def save(self: TrainRun) -> None:
        if self.progress.update <= 2:  # whatever comes later is lost, as with a kill
            saved(self)

    with monkeypatch.context() as patch:
        patch.setattr(TrainRun, "save", save)
        run(config, tmp_path)
    again = run(config, tmp_path, resume=True)
    assert lines(tmp_path, "resume")[0]["update"] == 2 and again.progress.update == 6
    assert [line["update"] for line in lines(tmp_path, "update")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_what_an_older_checkpoint_names_outlives_a_run_that_is_resumed_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {
        "checkpoint_every": 1,
        "league": {"past": 1, "snapshot_every": 1, "keep": 1},
    }
    run(small(budget={"updates": 3}, **changes), tmp_path)
    config = small(budget={"updates": 6}, **changes)
    with monkeypatch.context() as patch:
        patch.setattr(TrainRun, "save", lambda self: None)  # whatever comes is lost, as with a kill
        run(config, tmp_path, resume=True)
    older, newest = sorted((tmp_path / RUNS / "small" / CHECKPOINTS).iterdir())
    facts = json.loads((older / "checkpoint.json").read_text())["facts"]
    past = {one["spec"].partition(":")[2] for one in facts["league"]["members"] if one["kind"] == "past"}
    assert past and all(AdapterStore(tmp_path / "adapters").holds(ref) for ref in past)
    (newest / "learner.pt").write_bytes(b"cut")
    run(config, tmp_path, resume=True)
    assert [line["update"] for line in lines(tmp_path, "update")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_damaged_checkpoint_is_passed_over_and_without_a_whole_one_nothing_is_lost(tmp_path: Path) -> None:
    config = small(budget={"updates": 6}, evaluation={"every": 1}, checkpoint_every=1, league={"past": 1})
    run(config, tmp_path)
    folder = tmp_path / RUNS / "small" / CHECKPOINTS
    older, newest = sorted(folder.iterdir())
    (newest / "learner.pt").write_bytes(b"cut")
    for version in (tmp_path / "adapters" / "small").iterdir():  # of an older run: gone by then
        shutil.rmtree(version)
    assert run(config, tmp_path, resume=True).progress.update == 6
    for one in folder.iterdir():
        (one / "learner.pt").write_bytes(b"cut")
    before = lines(tmp_path)
    with pytest.raises(BadCheckpoint, match="no checkpoint is whole"):
        run(config, tmp_path, resume=True)
    assert lines(tmp_path) == before and older.exists()


def test_a_run_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    run(small(budget={"updates": 1}), tmp_path)
    path = tmp_path / RUNS / "small" / RUN_FILE
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "format": 0}))
    with pytest.raises(TrainError, match=r"was made by another version \(format 0, this one has 1\)"):
        run(small(), tmp_path, resume=True)
    path.write_text("no json")
    with pytest.raises(TrainError, match="is no JSON"):
        run(small(), tmp_path, resume=True)


def test_numbers_that_are_not_finite_leave_the_weights_and_end_the_run_after_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **rest: Any) -> None:
        raise NotFinite("the loss is nan")

    monkeypatch.setattr(Learner, "update", refuse)
    found = run(small(alarms={"not_finite_updates": 2}), tmp_path)
    assert found.stopped_by == "alarm" and found.progress.update == 2
    first, last = lines(tmp_path, "alarm")
    assert first["action"] == "back_off" and last["action"] == "stop"
    assert "2 updates in a row gave no finite numbers" in last["text"]
    assert lines(tmp_path, "update")[1]["step"] < 1


def test_matches_that_all_fail_end_the_run_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(planned: Any, **rest: Any) -> list[Any]:
        from arena.runner import failed

        return [failed(entry.job, "the engine is gone") for entry in planned]

    monkeypatch.setattr(train_run, "play", fail)
    with pytest.raises(TrainStopped, match="24 of 24 matches failed, the last so: the engine is gone"):
        run(small(), tmp_path)
    assert lines(tmp_path, "stop")[-1]["why"].startswith("error: TrainStopped")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": {"backend": "vllm"}}, "vllm plays LoRA adapters alone"),
        (
            {"policy": {"backend": "openai", "model": "m@http://x"}},
            "only a model on this machine can be trained",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_made(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    where = Settings(home=tmp_path, **changes)
    with pytest.raises(TrainError, match=message):
        asyncio.run(train(small(), settings=where))
    assert not (tmp_path / RUNS).exists()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    from arena.lock import hold

    folder = tmp_path / RUNS / "small"
    error = TrainError("taken")
    with (
        hold(folder, name="lock", mode=0o644, taken=error, unusable=lambda why: error),
        pytest.raises(TrainError, match="another process runs it"),
    ):
        run(small(), tmp_path)


@pytest.mark.slow
def test_lora_on_the_shipped_model_trains_and_resumes(tmp_path: Path) -> None:
    config = small(
        start={"weights": "model"},
        learner={"weights": "lora", "rank": 8, "lr": 0.001},
        rollout={"plays": 2},
        budget={"updates": 1},
    )
    found = run(config, tmp_path)
    store = AdapterStore(tmp_path / "adapters")
    assert store.resolve(found.version).kind == "lora"
    assert lines(tmp_path, "evaluation")[0]["nash_conv"]["kuhn"] < 0.2, "it learnt from an equilibrium's play"
    again = config.model_copy(update={"budget": type(config.budget)(updates=2)})
    assert run(again, tmp_path, resume=True).progress.update == 2
    other = small(
        name="other",
        start={"weights": "model", "adapter": found.version},
        learner={"weights": "lora", "rank": 8},
        rollout={"plays": 2},
        budget={"updates": 1},
    )
    begun = run(other, tmp_path)
    assert store.resolve("other@1").parent == found.version and begun.progress.update == 1
