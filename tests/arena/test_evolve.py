import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.curriculum.makers import maker_for
from agents.curriculum.rows import AttemptRow
from agents.errors import BadCurriculum, EngineFailed
from agents.judges.evaluator import Evaluator
from agents.judges.model import ModelJudge
from agents.judges.queue import FILE, PersonQueue
from agents.memory import Memory
from agents.policy.base import Completion, Request
from agents.policy.batcher import Batcher
from arena.errors import ConfigError, EvolveError
from arena.evolution import Evolution
from arena.evolve import MEMORY, RUNS, evolve
from arena.evolve_actors import Done, Job, PlannerActor, RandomActor
from arena.evolve_config import EvolveConfig
from arena.evolve_log import Entry, State, note, read_entries
from arena.evolve_players import PolicyActor
from arena.evolve_report import METRICS, PAGE
from games.tasks.cases import seed_case
from games.tasks.check import Attempt, check
from tests.agents.judges.judging import ScriptedEngine, completion
from tests.arena.evolving import SMALL, episodes, left, run, small, told


def test_a_run_keeps_everything_and_reports_it(tmp_path: Path) -> None:
    outcome = run(small(), tmp_path)
    assert outcome.stopped_by == "tasks"
    state, entries = left(tmp_path)
    rows = [row for entry in entries for row in entry.attempts]
    assert [row.number for row in rows] == list(range(state.next_attempt))
    assert state.tasks == 24 == sum(row.purpose != "test" for entry in entries for row in entry.tasks)
    found = episodes(tmp_path)
    assert [one[0] for one in found] == [f"small-{number:08d}" for number in range(len(rows))]
    assert [(task, success) for _, task, _, success in found] == [(row.task, row.success) for row in rows]
    with Memory(outcome.folder / MEMORY) as store:
        for key, task, actions, success in found:
            held = store.task(task)
            assert held is not None
            verdict = check(held.spec, Attempt(task, actions))
            assert verdict.success == success, key
        episode = store.episode("small-00000000")
        assert episode is not None
        assert episode.episode.judge == state.current.judge == Evaluator(small().judge.settings(3)).version
        assert [f["layer"] for f in episode.episode.evidence["findings"]] == ["rules", "machine"]
        assert {version.name for version in store.versions("config")} == {small().digest}
    metrics = json.loads((outcome.folder / METRICS).read_text())
    assert metrics == json.loads(json.dumps(outcome.metrics))
    assert metrics["attempts"] == len(rows) and metrics["config"] == small().digest
    assert metrics["judge"]["regression"]["right"] == 20
    assert metrics["judge"]["regression"]["judge"] == state.current.judge
    assert metrics["judge"]["queue"]["waiting"] > 0
    probes = [row for row in rows if row.purpose == "probe"]
    assert {row.task for row in probes} == set(state.probes)
    assert metrics["success"]["fixed"]["2"]["latest"]["attempts"] > 0
    assert metrics["training"]["may_train"] + metrics["training"]["held_out"] == len(rows)


def test_what_is_held_out_is_never_trained_on(tmp_path: Path) -> None:
    reviews = {"every": 4, "size": 2, "idle": 1}
    outcome = run(
        small(budget={"tasks": 48}, learner={"start": 5.0}, curriculum={"review": reviews}), tmp_path
    )
    state, entries = left(tmp_path)
    rows = [row for entry in entries for row in entry.attempts]
    held_out = {row.task for row in rows if row.purpose in ("probe", "test")}
    trained = [row for row in rows if row.purpose in ("train", "review")]
    assert sum(row.purpose == "review" for row in trained) > 5
    assert any(row.success for row in rows if row.purpose == "probe")
    assert held_out >= set(state.probes) and not held_out & {row.task for row in trained}
    with Memory(outcome.folder / MEMORY) as store:
        parents = {entry.record.spec.parent for entry in store.tasks(limit=1000)}
    assert not parents & held_out


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    outcome = run(small(name="a-b_c"), tmp_path)
    page = (outcome.folder / PAGE).read_text(encoding="utf-8")
    assert page.count("<svg") >= 14
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|<script", page)
    for word in ("Frontier", "Success by skill", "Fixed difficulty", "Diversity", "path length", "Versions"):
        assert word in page


def test_the_same_configuration_and_seed_give_the_same_run(tmp_path: Path) -> None:
    run(small(), tmp_path / "a")
    run(small(), tmp_path / "b")
    assert told(left(tmp_path / "a")[1]) == told(left(tmp_path / "b")[1])
    assert episodes(tmp_path / "a") == episodes(tmp_path / "b")
    run(small(seed=4), tmp_path / "c")
    assert told(left(tmp_path / "a")[1]) != told(left(tmp_path / "c")[1])


@pytest.mark.parametrize("actor", ["learner", "planner:0.9", "ladder:near"])
def test_a_run_in_parts_is_the_run_in_one(tmp_path: Path, actor: str) -> None:
    run(small(actor=actor), tmp_path / "one")
    for tasks in (6, 12, 18, 24):
        run(small(actor=actor, budget={"tasks": tasks}), tmp_path / "parts", resume=True)
    one, parts = left(tmp_path / "one"), left(tmp_path / "parts")
    assert told(one[1]) == told(parts[1])
    assert episodes(tmp_path / "one") == episodes(tmp_path / "parts")
    assert len(parts[0].bundles) == 1


KILLED = """
import os, signal, sys
import arena.evolve
from agents.memory import Memory
from evoke_arena import main

place, count = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]

def dying(work):
    def run(self, *args, **rest):
        global count
        found = work(self, *args, **rest)
        count -= 1
        if count == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return run

owner = arena.evolve.PersonQueue if place == "put" else Memory
setattr(owner, place, dying(getattr(owner, place)))
main()
"""
"""Runs `arena`, and kills itself right after the call of that count to a method of the store or the queue."""


def test_a_killed_run_goes_on_with_nothing_lost_or_doubled(tmp_path: Path) -> None:
    file = tmp_path / "evolve.toml"
    file.write_text(
        'name = "small"\nseed = 3\n[budget]\ntasks = 30\n[loop]\ntasks = 6\n[probe]\nevery = 2\nlevels = [2.0]\n'
    )
    home = tmp_path / "killed"
    script = [sys.executable, "-c", KILLED]
    call = ["evolve", str(file), "--home", str(home), "--resume"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # In a transaction, before it; where the queue knows what the store does not; and at once after the fixed tasks.
    for place, count in (
        ("add_versions", 1),
        ("add_episodes", 1),
        ("put", 2),
        ("add_episodes", 2),
        ("add_tasks", 1),
    ):
        dead = subprocess.run([*script, place, str(count), *call], capture_output=True, env=env, check=False)
        assert dead.returncode == -signal.SIGKILL, dead.stderr.decode()
    done = subprocess.run([*script, "get", "0", *call], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    run(EvolveConfig.load(file), tmp_path / "whole")
    killed, whole = left(home), left(tmp_path / "whole")
    assert killed[0].tasks == whole[0].tasks == 30
    assert told(killed[1]) == told(whole[1])
    assert episodes(home) == episodes(tmp_path / "whole")
    with PersonQueue(home / FILE) as one, PersonQueue(tmp_path / "whole" / FILE) as other:
        assert [w.case.id for w in one.waiting()] == [w.case.id for w in other.waiting()]


def test_a_generation_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(small(budget={"tasks": 12}), tmp_path)
    before = (left(tmp_path), episodes(tmp_path))

    def broken(self: Memory, *_: object) -> list[str]:
        raise RuntimeError("in the middle of a transaction")

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "add_episodes", broken)
        with pytest.raises(RuntimeError, match="in the middle"):
            run(small(), tmp_path, resume=True)
    after = left(tmp_path)
    assert told(after[1]) == told(before[0][1]) and episodes(tmp_path) == before[1]
    run(small(), tmp_path, resume=True)
    run(small(), tmp_path / "whole")
    assert told(left(tmp_path)[1]) == told(left(tmp_path / "whole")[1])


def test_a_run_is_not_begun_twice_nor_changed_unseen(tmp_path: Path) -> None:
    run(small(budget={"tasks": 6}), tmp_path)
    with pytest.raises(EvolveError, match="has a run of 1 generations; --resume"):
        run(small(), tmp_path)
    other = small(
        curriculum={"mix": {"bottleneck": 0.5, "coverage": 0.4, "random": 0.1}}, budget={"tasks": 12}
    )
    with pytest.raises(EvolveError, match="--adopt goes on with this one"):
        run(other, tmp_path, resume=True)
    run(other, tmp_path, resume=True, adopt=True)
    state, entries = left(tmp_path)
    assert [bundle.digest for bundle in state.bundles] == [small().digest, other.digest]
    assert [entry.bundle for entry in entries] == [0, 1]


def test_more_time_is_no_other_run() -> None:
    assert (
        small().digest
        == small(budget={"seconds": 9.0}).digest
        == small(loop={"tasks": 6, "report_every_s": 1}).digest
    )
    assert small().digest != small(seed=4).digest
    assert small().digest != small(judge={"trust": 0.9}).digest
    assert small().digest != small(curriculum={"max_task_retry": 7}).digest


def test_a_roll_back_takes_configuration_judge_and_weights_back_together(tmp_path: Path) -> None:
    run(small(budget={"tasks": 12}), tmp_path)
    old, _ = left(tmp_path)
    other = small(budget={"tasks": 24}, judge={"trust": 0.9}, learner={"gain": 0.5})
    run(other, tmp_path, resume=True, adopt=True)
    later = left(tmp_path)
    assert later[0].current.judge != old.current.judge
    outcome = run(other, tmp_path, rollback=1)
    assert outcome.stopped_by == "rollback" and outcome.metrics["generations"] == 2
    state, entries = left(tmp_path)
    assert state.current == old.bundles[0] and [entry.generation for entry in entries] == [0, 1]
    gone = {row.task for entry in later[1][2:] for row in entry.tasks} - {
        row.task for entry in entries for row in entry.tasks
    }
    with Memory(outcome.folder / MEMORY) as store:
        assert gone and all(store.task(task).record.status == "quarantine" for task in gone)  # type: ignore[union-attr]
    run(small(budget={"tasks": 30}), tmp_path, resume=True)
    state, entries = left(tmp_path)
    assert [entry.generation for entry in entries] == [0, 1, 4]
    assert entries[-1].bundle == 0 and len(state.bundles) == 2
    numbers = [row.number for entry in entries for row in entry.attempts]
    assert numbers == sorted(set(numbers)) and numbers[-1] + 1 == state.next_attempt
    assert not gone & {row.task for row in entries[-1].tasks}
    assert state.current.judge == old.current.judge


def test_the_weights_of_a_roll_back_are_those_of_then(tmp_path: Path) -> None:
    run(small(budget={"tasks": 12}), tmp_path)
    then = left(tmp_path)[1][-1].truth
    run(small(budget={"tasks": 24}), tmp_path, resume=True)
    assert left(tmp_path)[1][-1].truth != then
    run(small(), tmp_path, rollback=1)
    _, entries = left(tmp_path)
    assert entries[-1].truth == then
    run(small(budget={"tasks": 25}), tmp_path, resume=True)
    _, entries = left(tmp_path)
    assert entries[-1].standing and entries[-1].generation == 4


@pytest.mark.parametrize(
    ("generation", "message"), [(7, "in force are generations from 0 to 1"), (2, "from 0 to 1")]
)
def test_a_roll_back_to_what_is_not_in_force(tmp_path: Path, generation: int, message: str) -> None:
    run(small(budget={"tasks": 12}), tmp_path)
    with pytest.raises(EvolveError, match=message):
        run(small(), tmp_path, rollback=generation)
    with pytest.raises(EvolveError, match="has no run to roll back"):
        run(small(name="other"), tmp_path, rollback=0)


def test_a_disputed_task_goes_into_quarantine(tmp_path: Path) -> None:
    config = small(judge={"audit_share": 1.0}, budget={"tasks": 6})
    run(config, tmp_path)
    with PersonQueue(tmp_path / FILE) as queue:
        trained = {row.task for row in left(tmp_path)[1][0].attempts if row.purpose == "train"}
        case = next(one for one in queue.waiting(limit=1000) if one.case.spec.hash in trained)
        queue.answer(case.case.id, not case.judgement.answer, person="ada")
    run(small(judge={"audit_share": 1.0}, budget={"tasks": 12}), tmp_path, resume=True)
    _, entries = left(tmp_path)
    task = case.case.spec.hash
    assert entries[-1].quarantined == {task: "a person disputes its verdict"}
    with Memory(tmp_path / RUNS / "small" / MEMORY) as store:
        held = store.task(task)
        assert held is not None and held.record.status == "quarantine"
    metrics = json.loads((tmp_path / RUNS / "small" / METRICS).read_text())
    assert metrics["training"]["quarantined"] >= 1
    assert metrics["judge"]["disputed_tasks"] == [task]


def test_the_switch_keeps_attempts_from_training(tmp_path: Path) -> None:
    outcome = run(small(curriculum={"switch": {"train": False}}), tmp_path)
    assert outcome.metrics["training"]["may_train"] == 0
    assert set(outcome.metrics["training"]["quarantined_tasks"]) == {"training is switched off"}


class _Fallen(RandomActor):
    """Does nothing at all."""

    async def attempt_all(self, jobs: Any) -> list[Done]:
        return [Done(()) for _ in jobs]


def _evolution(home: Path, config: EvolveConfig, actor: Any, store: Memory, queue: PersonQueue) -> Evolution:
    return Evolution(
        config,
        store=store,
        state=State(),
        queue=queue,
        evaluator=Evaluator(config.judge.settings(config.seed)),
        actor=actor,
        maker=maker_for(config.world),
    )


@pytest.mark.asyncio
async def test_a_collapse_is_an_alert_raised_once(tmp_path: Path) -> None:
    config = small(curriculum={"alarms": {"window": 20}}, probe={"each": 0})
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = _evolution(tmp_path, config, _Fallen(), store, queue)
        await loop.begin()
        raised = []
        for _ in range(7):
            entry = await loop.step()
            raised += [alert["kind"] for alert in entry.alerts]
        assert raised.count("collapse") == 1
        assert "collapse" in loop.state.raised


def test_an_alert_can_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.evolve_players.RandomActor", _Fallen)
    config = small(
        actor="random", stop_on_alert=True, curriculum={"alarms": {"window": 20}}, budget={"tasks": 600}
    )
    outcome = run(config, tmp_path)
    assert outcome.stopped_by == "alert" and outcome.metrics["tasks"] < 60
    assert [alert["kind"] for alert in outcome.metrics["alerts"]] == ["collapse"]
    assert "success collapsed" in (outcome.folder / PAGE).read_text()


@pytest.mark.asyncio
async def test_an_agent_that_gets_worse_is_an_alert(tmp_path: Path) -> None:
    config = small(probe={"each": 0})
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = _evolution(tmp_path, config, RandomActor(), store, queue)
        for number in range(240):
            success = number % 5 > 0 if number < 140 else number % 5 == 0
            row = AttemptRow(number, f"t{number}", "open", ("open",), (2.0, 12.0, 2.0, 0.5, 1.0), success)
            loop.live.add_attempt(row)
        entry = Entry(240, 0)
        loop._alert(entry)
        assert "worse" in [alert["kind"] for alert in entry.alerts]


@pytest.mark.asyncio
async def test_duplicates_and_a_judge_that_disagrees_with_itself_are_alerts(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = _evolution(tmp_path, small(), RandomActor(), store, queue)
        loop.entries.append(Entry(0, 0, refused={"duplicate": 30, "similar": 30, "hard": 10}))
        loop.state.verdicts = [("a", True), ("a", False), ("b", True), ("b", True)]
        entry = Entry(1, 0)
        loop._alert(entry)
        assert [alert["kind"] for alert in entry.alerts] == ["duplicates", "disagreement"]
        assert all(alert["value"] > alert["bound"] for alert in entry.alerts)
        again = Entry(2, 0)
        loop._alert(again)
        assert again.alerts == [] and loop.state.raised == ["duplicates", "disagreement"]


def test_a_judge_that_fails_its_regression_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = check

    def lenient(spec: Any, attempt: Any, *, world: Any = None) -> Any:
        found = real(spec, attempt, world=world)
        return found if found.kind != "unmet" else real(spec, Attempt(spec.hash, ()), world=world)

    monkeypatch.setattr("agents.judges.evaluator.check", lenient)
    monkeypatch.setattr("agents.judges.regression.Row.right", property(lambda row: row.fixed.kind != "lost"))
    with pytest.raises(EvolveError, match="judge regression: 1 of 20 fixed trajectories"):
        run(small(), tmp_path)
    with Memory(tmp_path / RUNS / "small" / MEMORY) as store:
        assert store.counts()["episodes"] == 0


@pytest.mark.asyncio
async def test_a_policy_chooses_among_legal_actions_and_its_failure_is_data(tmp_path: Path) -> None:
    spec = seed_case()
    asked: list[Request] = []

    def reply(request: Request) -> Completion | EngineFailed:
        asked.append(request)
        assert request.constraint is not None and request.constraint.choices
        if len(asked) > 40:
            return EngineFailed("it died at /some/where/deep.bin")
        return completion(request.constraint.choices[0], share=0.5)

    batcher = Batcher(ScriptedEngine(reply))
    actor = PolicyActor(batcher, concurrency=2)
    done = await actor.attempt_all([Job(i, spec, "open", "train", i) for i in range(3)])
    await batcher.close()
    assert [bool(one.fault) for one in done].count(True) >= 1
    assert all("engine_failed: it died at deep.bin" in one.fault for one in done if one.fault)
    for one in done:
        assert check(spec, Attempt(spec.hash, one.actions)).kind == "unmet"
    assert "Steps left: 30" in asked[0].messages[1].content


@pytest.mark.asyncio
async def test_faults_are_kept_and_count_for_nothing(tmp_path: Path) -> None:
    class Broken(RandomActor):
        async def attempt_all(self, jobs: Any) -> list[Done]:
            done = await super().attempt_all(jobs)
            return [Done(done[0].actions, "engine_failed: it died"), *done[1:]]

    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = _evolution(tmp_path, small(), Broken(), store, queue)
        await loop.begin()
        entry = await loop.step()
        assert len(entry.faults) == 1 and "engine_failed" in entry.faults[0]
        assert 0 not in [row.number for row in entry.attempts]
        held = store.episode("small-00000000")
        assert (
            held is not None
            and held.episode.purpose == "trial"
            and held.episode.feedback.startswith("engine")
        )
        assert read_entries(store, [0])[0] == entry
        assert store.get(note(0)) is not None


@pytest.mark.asyncio
async def test_a_model_judge_is_asked_what_the_rules_leave_open(tmp_path: Path) -> None:
    batcher = Batcher(ScriptedEngine(lambda _: completion("no", share=0.6)))
    config = small(judge={"audit_share": 0.0, "ask": ["near_miss"]}, probe={"each": 0})
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = _evolution(tmp_path, config, _Fallen(), store, queue)
        loop.evaluator = Evaluator(config.judge.settings(3), model=ModelJudge(batcher))
        await loop.begin()
        entry = await loop.step()
        await batcher.close()
        waiting = queue.waiting()
        assert len(waiting) == len({row.task for row in entry.attempts})
        assert {one.why for one in waiting} == {"low_confidence"}
        assert {one.case.question for one in waiting} == {"near_miss"}
        assert not any(row.success for row in entry.attempts)


@pytest.mark.parametrize("skill", [1.0, 0.8, 0.0])
@pytest.mark.asyncio
async def test_planners_are_as_good_as_their_skill_and_alike_each_time(skill: float) -> None:
    spec = seed_case()
    jobs = [Job(i, spec, "open", "train", i) for i in range(12)]
    done = await PlannerActor(skill).attempt_all(jobs)
    again = await PlannerActor(skill).attempt_all(list(reversed(jobs)))
    assert done == again[::-1]
    solved = sum(check(spec, Attempt(spec.hash, one.actions)).success for one in done)
    assert solved == 12 if skill == 1 else solved > 3 if skill else solved < 3


def test_the_text_world_runs_in_the_same_loop(tmp_path: Path) -> None:
    skills = ["navigate", "fetch", "open"]
    outcome = run(small(world="text", budget={"tasks": 6}, curriculum={"skills": skills}), tmp_path)
    assert outcome.metrics["tasks"] == 6
    with Memory(outcome.folder / MEMORY) as store:
        _, entries = left(tmp_path)
        found = store.task(entries[0].tasks[0].task)
        assert found is not None and found.spec.world == "text"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"actor": "wizard"}, "actor: got 'wizard', allowed are learner, random"),
        ({"actor": "ladder:top"}, "ladder takes one of random, greedy, near, middle, far"),
        ({"actor": "planner:2"}, "planner takes a skill from 0 to 1"),
        ({"nmae": "x"}, r"unknown key 'nmae' \(did you mean 'name'\?\)"),
        ({"name": "../up"}, "name"),
        ({"budget": {}, "loop": {"tasks": 0}}, "loop.tasks"),
        ({"loop": {"tasks": 1000, "attempts": 64}}, "at most 2000 attempts a generation"),
        ({"judge": {"ask": ["pretty"]}}, "ask: got 'pretty', allowed are purposeful, near_miss"),
        ({"probe": {"levels": [float("nan")]}}, "probe.levels"),
        ({"curriculum": {"mix": {"bottleneck": 0.9}}}, "sum"),
        ({"curriculum": {"skills": ["flying"]}}, "unknown skill 'flying'"),
        ({"world": "ocean"}, "world"),
        ({"budget": {"seconds": -1}}, "budget.seconds"),
    ],
)
def test_bad_configurations_are_one_line(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises((EvolveError, BadCurriculum, ConfigError), match=message) as caught:
        run(EvolveConfig.from_data({**SMALL, **data}, where="x.toml"), tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_store_of_a_newer_version(tmp_path: Path) -> None:
    outcome = run(small(budget={"tasks": 6}), tmp_path)
    with Memory(outcome.folder / MEMORY) as store:
        store.put("evolve", {**store.get("evolve"), "version": 99})
    with pytest.raises(EvolveError, match="version 99, this program reads 1"):
        run(small(), tmp_path, resume=True)


@pytest.mark.asyncio
async def test_two_processes_do_not_run_one_run(tmp_path: Path) -> None:
    from agents.policy.settings import PolicySettings
    from arena.lock import hold

    def unusable(error: OSError) -> EvolveError:
        return EvolveError(str(error))

    folder = tmp_path / RUNS / "small"
    with hold(folder, name="lock", mode=0o644, taken=EvolveError("held"), unusable=unusable):
        with pytest.raises(EvolveError, match="another process runs it"):
            await evolve(small(), home=tmp_path, policy=PolicySettings())


def test_the_example_is_read_and_every_section_documented() -> None:
    root = Path(__file__).parents[2]
    config = EvolveConfig.load(root / "examples" / "evolve.toml")
    assert (config.name, config.actor, config.budget.limit_s) == ("frontier", "learner", 120)
    text = (root / "docs" / "evolving.md").read_text(encoding="utf-8")
    for name in EvolveConfig.model_fields:
        assert f"`{name}`" in text or f"`{name}." in text, name
