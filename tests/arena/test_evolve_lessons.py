import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.curriculum.alerts import retrieval
from agents.curriculum.makers import maker_for
from agents.judges.evaluator import Evaluator
from agents.judges.queue import PersonQueue
from agents.memory import Lesson, Memory
from agents.memory.usefulness import Arms
from agents.policy.batcher import Batcher
from agents.prompting.advice import without_advice
from agents.prompting.attempts import AttemptPrompter
from arena.evolution import Evolution
from arena.evolve import MEMORY
from arena.evolve_actors import Actor, Done, Job
from arena.evolve_config import EvolveConfig, LessonsSection
from arena.evolve_figures import lesson_figures
from arena.evolve_lessons import GAINS_NOTHING, HURTS, Tallies
from arena.evolve_log import Entry, State, read_entries
from arena.evolve_players import PolicyActor
from arena.evolve_report import PAGE
from games.rng import derive_seed
from games.tasks.solver import solve_task
from tests.agents.judges.judging import ScriptedEngine, completion
from tests.arena.evolving import SMALL, episodes, left, run, small, told

USEFUL, HARMFUL = "Take a key before you go to a door.", "Always wait twice before each step."
ANYWHERE = "A grid task that takes avoid, deliver, dodge, fetch, navigate, open, order."


def planted(key: str, text: str) -> Lesson:
    return Lesson(id=key, text=text, when=ANYWHERE, skill="open", kind="success")


class Reader(Actor):
    """Succeeds by chance, more often with the useful piece of advice and less often with the harmful one."""

    version = "reader-1"
    reads = True

    def __init__(self, effects: dict[str, float], *, base: float = 0.5, seed: int = 0) -> None:
        self.effects = effects
        self.base = base
        self.seed = seed
        self.jobs: list[Job] = []

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        self.jobs += jobs
        done = []
        for job in jobs:
            chance = self.base + sum(self.effects.get(text, 0.0) for text in job.advice)
            plan = solve_task(job.spec).plan or ()
            won = random.Random(derive_seed(self.seed, "reader", job.number)).random() < chance
            note = {"prompt": "reader", "message": 1, "start": 0, "end": 9} if job.advice else None
            done.append(Done(plan if won else plan[:-1], shown=len(job.advice), note=note))
        return done


def reading(**changes: Any) -> EvolveConfig:
    """A configuration in which lessons are found for every task and none is distilled."""
    lessons = {"floor": 0.0, "keep": 0, **changes.pop("lessons", {})}
    return small(
        loop={"tasks": 4, "attempts": 16},
        probe={"each": 0},
        lessons=lessons,
        judge={"audit_share": 0},
        **changes,
    )


def loop_of(config: EvolveConfig, actor: Actor, store: Memory, queue: PersonQueue) -> Evolution:
    return Evolution(
        config,
        store=store,
        state=State(),
        queue=queue,
        evaluator=Evaluator(config.judge.settings(config.seed)),
        actor=actor,
        maker=maker_for(config.world),
    )


async def generations(
    home: Path, actor: Actor, config: EvolveConfig, count: int, lessons: list[Lesson]
) -> list[Entry]:
    with Memory(home / "m.db") as store, PersonQueue(home / "q.db") as queue:
        store.add_lessons(lessons)
        loop = loop_of(config, actor, store, queue)
        await loop.begin()
        return [await loop.step() for _ in range(count)]


@pytest.mark.asyncio
async def test_a_planted_useful_lesson_and_a_planted_harmful_one_are_told_apart(tmp_path: Path) -> None:
    actor = Reader({USEFUL: 0.3, HARMFUL: -0.3})
    config = reading()
    lessons = [planted("useful", USEFUL), planted("harmful", HARMFUL)]
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        store.add_lessons(lessons)
        loop = loop_of(config, actor, store, queue)
        await loop.begin()
        for _ in range(7):
            await loop.step()
        status = {entry.lesson.id: entry.status for entry in store.lessons(status=None)}
        assert status == {"useful": "active", "harmful": "retired"}
        figures = lesson_figures(loop.entries)
    table = {one["id"]: one for one in figures["table"]}
    assert table["useful"]["gain"]["interval"][0] > 0
    assert table["harmful"]["gain"]["interval"][1] < 0
    assert table["harmful"]["status"] == "retired" and figures["retired_for"] == {HURTS: 1}
    assert table["useful"]["text"] == USEFUL


def simulated(effects: dict[str, float], *, seed: int, attempts: int) -> tuple[dict[str, str], int]:
    """Offer lessons to attempts that succeed at one half; return why each was retired, and how often it alarmed."""
    rng, settings = random.Random(seed), LessonsSection()
    tallies, active, gone, alarms = Tallies(), list(effects), dict[str, str](), 0
    for start in range(0, attempts, 16):
        offers, successes = [], {}
        for number in range(start, start + 16 if active else start):
            advised = rng.random() < settings.share
            found = [key for key in active if advised]
            shown = [key for key in found if len(active) == 1 or rng.random() >= settings.held_back]
            offers.append([number, advised, list(active), shown])
            successes[number] = rng.random() < 0.5 + sum(effects[key] for key in shown)
        tallies.fold({"offers": offers}, successes)
        alarms += retrieval(tallies.latest, least=settings.alarm_attempts) is not None
        for key in list(active):
            why = tallies.verdict(key, settings)
            if why is not None:
                gone[key] = why
                active.remove(key)
    return gone, alarms


def test_lessons_are_told_apart_with_power() -> None:
    # Two lessons that are always found together, +20 % and -20 %, 400 attempts, 100 learners:
    # the harmful one is retired by at least 95, the useful one by at most 5.
    runs = [simulated({"useful": 0.2, "harmful": -0.2}, seed=seed, attempts=400)[0] for seed in range(100)]
    assert sum("harmful" in gone for gone in runs) >= 95
    assert sum("useful" in gone for gone in runs) <= 5
    assert sum(gone.get("harmful") == HURTS for gone in runs) >= 60


def test_what_gains_nothing_goes_and_what_helps_alone_stays() -> None:
    idle = [simulated({"idle": 0.0}, seed=seed, attempts=800)[0] for seed in range(60)]
    assert sum("idle" in gone for gone in idle) >= 35
    assert GAINS_NOTHING in {gone.get("idle") for gone in idle}
    alone = [simulated({"useful": 0.2}, seed=seed, attempts=800)[0] for seed in range(60)]
    assert sum("useful" in gone for gone in alone) <= 2


def test_the_alert_needs_its_sample_and_sounds_when_advice_hurts() -> None:
    assert retrieval(Arms(49, 0, 200, 180), least=50) is None
    assert retrieval(Arms(200, 0, 49, 49), least=50) is None
    found = retrieval(Arms(100, 30, 100, 60), least=50)
    assert found is not None and found.kind == "retrieval" and found.value < found.bound == 0
    assert "30 of 100" in found.text and "60 of 100 without" in found.text
    assert retrieval(Arms(100, 60, 100, 30), least=50) is None
    # Where advice does nothing, at most 2 of 40 learners ever hear it in 800 attempts.
    assert sum(simulated({"idle": 0.0}, seed=seed, attempts=800)[1] > 0 for seed in range(40)) <= 2


@pytest.mark.asyncio
async def test_advice_that_hurts_is_an_alert_and_less_of_it_is_told(tmp_path: Path) -> None:
    actor = Reader({HARMFUL: -0.45})
    config = reading(lessons={"min_offers": 10**6, "patience": 10**6})
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        store.add_lessons([planted("harmful", HARMFUL)])
        loop = loop_of(config, actor, store, queue)
        await loop.begin()
        entries = [await loop.step() for _ in range(6)]
        raised = [alert["kind"] for entry in entries for alert in entry.alerts]
        assert raised.count("retrieval") == 1
        assert "retrieval" in loop.state.raised
        shares = [_share(entry) for entry in entries]
    assert min(shares[:2]) > 0.35 and shares[-1] < 0.3


def _share(entry: Entry) -> float:
    offers = entry.lessons["offers"]
    return sum(advised for _, advised, _, _ in offers) / len(offers)


@pytest.mark.asyncio
async def test_no_advice_reaches_the_control_share(tmp_path: Path) -> None:
    actor = Reader({})
    entries = await generations(tmp_path, actor, reading(), 4, [planted("a", USEFUL), planted("b", HARMFUL)])
    jobs = {job.number: job for job in actor.jobs}
    control = advised = 0
    with Memory(tmp_path / "m.db") as store:
        for number, has_advice, found, shown in (
            offer for entry in entries for offer in entry.lessons["offers"]
        ):
            episode = store.episode(f"small-{number:08d}")
            assert episode is not None and found
            assert list(episode.episode.lessons) == shown and set(shown) <= set(found)
            if has_advice:
                advised += 1
                assert len(jobs[number].advice) == len(shown)
                assert ("advice" in episode.episode.evidence) == bool(shown)
            else:
                control += 1
                assert jobs[number].advice == () and shown == []
                assert "advice" not in episode.episode.evidence
    assert 0.35 < advised / (advised + control) < 0.65


@pytest.mark.parametrize(("share", "told_some"), [(0.0, False), (1.0, True)])
@pytest.mark.asyncio
async def test_the_share_may_be_none_or_all(tmp_path: Path, share: float, told_some: bool) -> None:
    actor = Reader({})
    config = reading(lessons={"share": share, "held_back": 0.0})
    await generations(tmp_path, actor, config, 2, [planted("a", USEFUL)])
    assert {bool(job.advice) for job in actor.jobs} == {told_some}


@pytest.mark.asyncio
async def test_fixed_tasks_and_the_test_set_are_attempted_without_advice(tmp_path: Path) -> None:
    actor = Reader({})
    config = small(probe={"every": 1, "levels": [2.0]}, lessons={"floor": 0.0, "share": 1.0})
    entries = await generations(tmp_path, actor, config, 2, [planted("a", USEFUL)])
    advised = {job.purpose for job in actor.jobs if job.advice}
    assert advised <= {"train", "review"} and "train" in advised
    assert "probe" in {job.purpose for job in actor.jobs}
    with Memory(tmp_path / "m.db") as store:
        sources = {source for entry in store.lessons(status=None) for source in entry.lesson.sources}
    held_out = {row.number for entry in entries for row in entry.attempts if row.purpose in ("probe", "test")}
    assert sources and held_out
    assert not sources & {f"small-{number:08d}" for number in held_out}


@pytest.mark.asyncio
async def test_the_prompt_carries_the_advice_and_only_where_it_should(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda request: completion(request.constraint.choices[0]))  # type: ignore[union-attr,index]
    batcher = Batcher(engine)
    config = small(probe={"each": 0}, lessons={"floor": 0.0}, loop={"tasks": 3, "attempts": 4})
    entries = await generations(
        tmp_path,
        PolicyActor(batcher, concurrency=4),
        config,
        2,
        [planted("a", USEFUL), planted("b", HARMFUL)],
    )
    await batcher.close()
    prompts: dict[str, list[Any]] = {}
    for request in engine.asked:
        prompts.setdefault(request.match, []).append(request.messages)
    seen = set()
    with Memory(tmp_path / "m.db") as store:
        for number, advised, _, shown in (offer for entry in entries for offer in entry.lessons["offers"]):
            texts = [store.lesson(key).lesson.text for key in shown]  # type: ignore[union-attr]
            episode = store.episode(f"small-{number:08d}")
            assert episode is not None
            plain = AttemptPrompter(
                episode.spec, style="full", budget_tokens=4000, count=lambda text: len(text) // 4
            )
            state = plain.world.initial()
            for step, messages in enumerate(prompts[f"attempt-{number}"]):
                body = messages[1].content
                quoted = [line[2:] for line in body.splitlines() if line.startswith("> ")]
                assert quoted == texts and bool(quoted) <= advised
                # What is trained on is the prompt of an attempt without advice.
                note = episode.episode.evidence.get("advice")
                bare = messages if note is None else without_advice(messages, note)
                assert bare == plain.messages(state, episode.episode.actions[:step])
                state = plain.world.step(state, episode.episode.actions[step])
            seen.add((advised, len(shown)))
    assert (False, 0) in seen and any(advised and count for advised, count in seen)


def test_for_bots_that_cannot_read_nothing_changes(tmp_path: Path) -> None:
    run(small(), tmp_path / "a")
    run(small(lessons={"share": 0.0}), tmp_path / "b")
    run(small(lessons={"keep": 0}), tmp_path / "c")

    def rest(home: Path) -> list[dict[str, Any]]:
        return [{**entry, "lessons": None} for entry in told(left(home)[1])]

    assert rest(tmp_path / "a") == rest(tmp_path / "b") == rest(tmp_path / "c")
    assert episodes(tmp_path / "a") == episodes(tmp_path / "c")
    _, entries = left(tmp_path / "a")
    assert not any("offers" in entry.lessons for entry in entries)
    assert sum(len(entry.lessons.get("made", ())) for entry in entries) > 5
    _, entries = left(tmp_path / "c")
    assert not any("made" in entry.lessons for entry in entries)


def status_of(home: Path) -> dict[str, tuple[str, str | None, int, int]]:
    with Memory(home / "runs" / "small" / MEMORY) as store:
        return {
            one.lesson.id: (one.status, one.merged_into, one.offered, one.succeeded)
            for one in store.lessons(status=None)
        }


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Reader]:
    """Lets a reader attempt where the configuration says `random`."""

    def made() -> Reader:
        return Reader({}, base=0.6)

    monkeypatch.setattr("arena.evolve_players.RandomActor", made)
    return made


def test_lessons_of_a_run_in_parts_are_those_of_the_run_in_one(tmp_path: Path, reader: object) -> None:
    def config(tasks: int) -> EvolveConfig:
        return small(actor="random", budget={"tasks": tasks}, lessons={"keep": 12, "floor": 0.1})

    whole = run(config(30), tmp_path / "one")
    for tasks in (6, 18, 30):
        run(config(tasks), tmp_path / "parts", resume=True)
    assert told(left(tmp_path / "one")[1]) == told(left(tmp_path / "parts")[1])
    assert status_of(tmp_path / "one") == status_of(tmp_path / "parts")
    figures = whole.metrics["lessons"]
    assert figures["active"] <= 12 and figures["evicted"] > 0
    assert figures["advised"]["attempts"] + figures["control"]["attempts"] == figures["found_for"] > 0
    page = (whole.folder / PAGE).read_text(encoding="utf-8")
    assert "Lessons" in page and "Solved with advice" in page


def test_a_roll_back_takes_lessons_back(tmp_path: Path, reader: object) -> None:
    def config(tasks: int) -> EvolveConfig:
        return small(actor="random", budget={"tasks": tasks}, lessons={"keep": 12, "floor": 0.1})

    run(config(12), tmp_path)
    before = {key: row[:2] for key, row in status_of(tmp_path).items()}
    run(config(30), tmp_path, resume=True)
    later = status_of(tmp_path)
    assert {key: row[:2] for key, row in later.items()} != before
    run(config(30), tmp_path, rollback=1)
    after = {key: row[:2] for key, row in status_of(tmp_path).items()}
    assert {key: after[key] for key in before} == before
    assert {after[key][0] for key in after if key not in before} == {"evicted"}
    run(config(36), tmp_path, resume=True)
    _, entries = left(tmp_path)
    assert [entry.generation for entry in entries][:2] == [0, 1]


@pytest.mark.asyncio
async def test_a_lesson_that_was_evicted_may_come_back(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as store, PersonQueue(tmp_path / "q.db") as queue:
        loop = loop_of(small(lessons={"floor": 0.1}, probe={"each": 0}), Reader({}), store, queue)
        await loop.begin()
        entry = await loop.step()
        made = entry.lessons["made"]
        store.set_lesson_status(made, "evicted")
        again = Entry(1, 0, attempts=entry.attempts)
        jobs = [
            Job(row.number, store.task(row.task).spec, row.skill, row.purpose, 0) for row in entry.attempts
        ]  # type: ignore[union-attr]
        loop.keeper.learn(again, jobs, quarantined=set())
        assert sorted(again.lessons["revived"]) == made and again.lessons["active"] == len(made)
        assert "made" not in again.lessons
        # In quarantine nothing is learnt from a task.
        store.set_lesson_status(made, "evicted")
        none = Entry(2, 0, attempts=entry.attempts)
        loop.keeper.learn(none, jobs, quarantined={row.task for row in entry.attempts})
        assert none.lessons == {"active": 0}


def test_what_did_not_fit_into_the_prompt_counts_for_nothing() -> None:
    tallies = Tallies()
    tallies.fold(
        {"offers": [[0, True, ["a", "b"], ["a"]], [1, True, [], []], [2, False, ["a"], []]]},
        {0: True, 1: False},
    )
    assert tallies.arms("a") == Arms(1, 1, 0, 0) and tallies.arms("b") == Arms(0, 0, 1, 1)
    assert tallies.overall == Arms(1, 1, 0, 0)
    tallies.merge({"a": "b"})
    assert tallies.arms("a") == Arms() and tallies.arms("b") == Arms(1, 1, 1, 1)


@pytest.mark.parametrize(
    ("lessons", "message"),
    [
        ({"share": 1.5}, "lessons.share"),
        ({"k": 0}, "lessons.k"),
        ({"keep": -1}, "lessons.keep"),
        ({"min_offers": 1}, "lessons.min_offers"),
    ],
)
def test_bad_settings_are_one_line(lessons: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        EvolveConfig.from_data({**SMALL, "lessons": lessons}, where="x.toml")
    assert "\n" not in str(caught.value)


def test_entries_of_before_lessons_are_read(tmp_path: Path) -> None:
    run(small(budget={"tasks": 6}), tmp_path)
    with Memory(tmp_path / "runs" / "small" / MEMORY) as store:
        data = store.get("evolve/00000000")
        assert isinstance(data, dict)
        for name in ("lessons", "proposals"):
            del data[name]
        store.put("evolve/00000000", data)
        (entry,) = read_entries(store, [0])
    assert entry.lessons == {} and entry.proposals == {}
