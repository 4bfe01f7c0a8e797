import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.curriculum.generator import Wanted
from agents.curriculum.makers import maker_for
from agents.curriculum.proposals import MALFORMED, OTHER_SKILL, OTHER_WORLD, TRIVIAL, UNSOLVABLE
from agents.curriculum.strategies import Request as TaskRequest
from agents.errors import EngineFailed
from agents.judges.evaluator import Evaluator
from agents.judges.queue import PersonQueue
from agents.memory import Memory
from agents.policy.agent import GenerationSettings
from agents.policy.base import Completion, Request
from agents.policy.batcher import Batcher
from arena.errors import EvolveError
from arena.evolution import Evolution
from arena.evolve import MEMORY
from arena.evolve_actors import PlannerActor
from arena.evolve_config import EvolveConfig
from arena.evolve_figures import proposer_figures
from arena.evolve_log import Entry, State
from arena.evolve_players import adapter_of, model_specs, pinned_spec
from arena.evolve_proposer import JSON, OFFERS, Proposer
from arena.evolve_report import PAGE
from games.tasks.cases import seed_case
from games.tasks.difficulty import measured
from games.tasks.generate import Knobs, generate
from games.tasks.spec import TaskSpec
from tests.agents.judges.judging import ScriptedEngine, completion
from tests.arena.evolving import SMALL, episodes, left, run, small, told

COMPACT = GenerationSettings(style="compact")


def choices(request: Request) -> tuple[str, ...]:
    assert request.constraint is not None and request.constraint.choices is not None
    return request.constraint.choices


def by_seed(request: Request) -> Completion:
    """Chooses one of the offers by the request's seed alone, as a sampling model does."""
    offered = choices(request)
    return completion(offered[(request.seed or 0) % len(offered)])


class Run:
    """A loop with a proposer that answers as a test says."""

    def __init__(
        self,
        home: Path,
        reply: Callable[[Request], Any],
        *,
        playing: GenerationSettings = COMPACT,
        **changes: Any,
    ) -> None:
        proposer = {"spec": "policy", "share": 0.9, **changes.pop("proposer", {})}
        self.config = small(proposer=proposer, probe={"each": 0}, judge={"audit_share": 0}, **changes)
        self.engine = ScriptedEngine(reply)
        self.batcher = Batcher(self.engine)
        self.store = Memory(home / "m.db")
        self.queue = PersonQueue(home / "q.db")
        maker = maker_for(self.config.world)
        actor = PlannerActor(0.9)
        self.loop = Evolution(
            self.config,
            store=self.store,
            state=State(),
            queue=self.queue,
            evaluator=Evaluator(self.config.judge.settings(3)),
            actor=actor,
            maker=maker,
        )
        self.proposer = Proposer(
            self.batcher,
            settings=self.config.proposer,
            world=self.config.world,
            axes=self.loop.axes,
            seed=self.config.seed,
            maker=maker,
            playing=playing,
        )
        self.loop.proposer = self.proposer

    async def __aenter__(self) -> "Run":
        await self.loop.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.batcher.close()
        self.store.close()
        self.queue.close()

    def own(self, entry: Entry) -> list[TaskSpec]:
        """The proposer's tasks of a generation."""
        found = [self.store.task(row.task) for row in entry.tasks]
        return [one.spec for one in found if one is not None and one.spec.generator == self.proposer.version]


@pytest.mark.asyncio
async def test_a_weak_model_chooses_among_offered_edits(tmp_path: Path) -> None:
    async with Run(tmp_path, by_seed) as one:
        entries = [await one.loop.step() for _ in range(3)]
        assert one.proposer.mode == OFFERS
        specs = [spec for entry in entries for spec in one.own(entry)]
        assert len(specs) > 8
        for entry in entries:
            found = entry.proposals
            assert found["version"] == one.proposer.version
            assert found["numbers"] >= found["accepted"] > 0
            assert found["tries"] == found["accepted"] + sum(found["refused"].values()) - found[
                "refused"
            ].get("given_up", 0)
        for spec in specs:
            assert spec.parent is not None and measured(spec) is not None
        rows = [row for entry in entries for row in entry.attempts if row.generator == one.proposer.version]
        assert {row.task for row in rows} <= {spec.hash for spec in specs}
        (version,) = [v for v in one.store.versions("generator") if v.name == one.proposer.version]
        assert version.detail["policy"] == one.proposer.policy == "scripted, adapter base"
        assert "scripted, adapter base" in {v.name for v in one.store.versions("policy")}
        assert one.loop.state.current.proposer == one.proposer.policy
        assert all(
            request.match == "proposer" and "ask set" in request.messages[1].content
            for request in one.engine.asked
        )


@pytest.mark.asyncio
async def test_a_refused_choice_is_told_and_not_offered_again(tmp_path: Path) -> None:
    asked: list[Request] = []

    def first(request: Request) -> Completion:
        asked.append(request)
        return completion(choices(request)[0])

    async with Run(tmp_path, first) as one:
        entry = Entry(0, 0)
        await one.loop._propose(entry, start=0, count=6)
        skill = TaskRequest("open", one.loop.axes.balanced(3), "random")
        seed = 5
        asked.clear()
        for attempt in range(3):
            refused = "" if attempt == 0 else "easy"
            await one.proposer.make(Wanted(9, attempt, skill, seed, refused), one.loop.live)
        offered = [choices(request) for request in asked]
        assert offered[1] == offered[0][1:] and offered[2] == offered[1][1:]
        assert "again" not in asked[0].messages[1].content
        assert "again it would be solved too often" in asked[1].messages[1].content


def written(spec: TaskSpec, **changes: Any) -> str:
    return json.dumps({**spec.to_data(), **changes})


@pytest.mark.asyncio
async def test_what_a_strong_model_writes_is_checked_like_any_task(tmp_path: Path) -> None:
    seed = seed_case()
    other = {
        "world": "text",
        "layout": {"rooms": ["hall", "attic"], "start": "hall", "ways": [], "things": []},
    }
    answers = [
        ("nonsense", MALFORMED),
        ('{"version": 99}', MALFORMED),
        (written(seed, budget=3), UNSOLVABLE),
        (written(seed, skills=["dodge"], difficulty={"objects": "many"}), MALFORMED),
        (json.dumps({"version": 1, **other, "goal": {"at": "hall"}, "budget": 5}), OTHER_WORLD),
        (written(seed, goal={"never": {"at": "exit"}}), MALFORMED),
        (written(generate(1, Knobs(objects=0)), goal={"visited": "exit"}), OTHER_SKILL),
    ]
    request = TaskRequest("open", (2.0, 14.0, 1.0, 0.5, 0.0), "random")
    said: list[str] = []
    async with Run(
        tmp_path, lambda _: completion(said[-1]), playing=GenerationSettings(), proposer={"mode": "auto"}
    ) as one:
        assert one.proposer.mode == JSON
        live = one.loop.live
        for attempt, (text, reason) in enumerate(answers):
            said.append(text)
            got = await one.proposer.make(Wanted(0, attempt, request, 5, "unmade" if attempt else ""), live)
            assert got == reason, text
        said.append(f"```json\n{written(seed, skills=['dodge'], generator='me', budget=30)}\n```")
        made = await one.proposer.make(Wanted(0, 9, request, 5, OTHER_SKILL), live)
        assert not isinstance(made, str) and made.spec is not None
        assert (
            made.spec.generator == one.proposer.version
            and "open" in made.skills
            and "dodge" not in made.skills
        )
        assert "Your last task was not taken: task: it takes" in one.engine.asked[-1].messages[1].content
        assert (
            one.engine.asked[-1].constraint is not None and one.engine.asked[-1].constraint.schema is not None
        )


def test_a_goal_that_holds_at_the_start_is_trivial() -> None:
    from agents.curriculum.proposals import Refusal, read_proposal

    layout = {"rooms": ["hall", "attic"], "start": "hall", "ways": [], "things": []}
    data = {"version": 1, "world": "text", "layout": layout, "goal": {"at": "hall"}, "budget": 5}
    request = TaskRequest("navigate", (0.0,) * 5, "random")
    found = read_proposal(json.dumps(data), request, generator="me-1")
    assert isinstance(found, Refusal) and found.reason == TRIVIAL


@pytest.mark.asyncio
async def test_repeats_and_what_cannot_be_learned_are_refused_and_counted(tmp_path: Path) -> None:
    always = written(seed_case(), budget=30)
    async with Run(tmp_path, lambda _: completion(always), playing=GenerationSettings()) as one:
        entries = [await one.loop.step() for _ in range(2)]
        assert "proposer" in one.loop.state.raised
        specs = [spec for entry in entries for spec in one.own(entry)]
        assert len(specs) <= 1
        retries = one.config.curriculum.max_task_retry
        figures = proposer_figures(entries)
        assert figures is not None
        refused = figures["refused"]
        assert refused["given_up"] == figures["numbers"] - len(specs)
        assert figures["tries"] <= retries * figures["numbers"]
        assert figures["tries"] >= retries * refused["given_up"]
        assert set(refused) <= {"given_up", "duplicate", "similar", "easy", "hard", "far", OTHER_SKILL}
        assert refused.get("duplicate", 0) + refused.get(OTHER_SKILL, 0) > 0
        for entry in entries:
            # What a maker's word named is unmade for the generator, whose own counts stay what they were.
            assert set(entry.refused) <= {"unmade", "duplicate", "similar", "easy", "hard", "far", "given_up"}


@pytest.mark.asyncio
async def test_where_the_model_fails_the_generator_makes_the_tasks(tmp_path: Path) -> None:
    async with Run(tmp_path, lambda _: EngineFailed("it died at /some/where/deep.bin")) as one:
        entry = await one.loop.step()
        assert len(one.engine.asked) == 1
        assert entry.faults == [entry.faults[0]]
        assert "engine_failed: it died at deep.bin" in entry.faults[0] and entry.faults[0].startswith(
            "proposer, task"
        )
        assert entry.proposals["failed"] == 1 and entry.proposals["accepted"] == 0
        assert len([row for row in entry.tasks if row.purpose == "train"]) >= 5


@pytest.mark.asyncio
async def test_its_share_is_kept_and_spread_over_the_strategies(tmp_path: Path) -> None:
    async with Run(tmp_path, by_seed, proposer={"share": 0.3}) as one:
        due = [number for number in range(2000) if one.proposer.due(number)]
        assert abs(len(due) / 2000 - 0.3) < 0.01
        window = [sum(one.proposer.due(n) for n in range(start, start + 20)) for start in range(0, 2000, 20)]
        assert min(window) >= 4 and max(window) <= 8
        shares = {
            strategy: sum(one.loop.generator.strategy(n) == strategy for n in due) / len(due)
            for strategy in ("bottleneck", "coverage", "random")
        }
        assert shares["bottleneck"] == pytest.approx(0.7, abs=0.03)
        assert shares["random"] == pytest.approx(0.1, abs=0.03)


@pytest.mark.asyncio
async def test_the_same_answers_give_the_same_tasks(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        async with Run(tmp_path / name, by_seed) as one:
            found.append(told([await one.loop.step() for _ in range(2)]))
    assert found[0] == found[1]


def test_the_embedded_model_proposes_and_a_run_in_parts_is_the_run_in_one(tmp_path: Path) -> None:
    def config(tasks: int) -> EvolveConfig:
        return small(
            proposer={"spec": "policy", "share": 0.5},
            budget={"tasks": tasks},
            probe={"each": 0},
            actor="planner:0.9",
        )

    outcome = run(config(12), tmp_path / "one")
    found = outcome.metrics["proposer"]
    assert found["version"].startswith("proposer-offers-1/")
    assert found["accepted"] > 1 and found["failed"] == 0
    page = (outcome.folder / PAGE).read_text(encoding="utf-8")
    assert "Tasks proposed by a model" in page and found["version"] in page
    for tasks in (6, 12):
        run(config(tasks), tmp_path / "parts", resume=True)
    assert told(left(tmp_path / "one")[1]) == told(left(tmp_path / "parts")[1])
    assert episodes(tmp_path / "one") == episodes(tmp_path / "parts")
    state, _ = left(tmp_path / "one")
    assert state.current.proposer.startswith("tiny@")
    with Memory(outcome.folder / MEMORY) as store:
        assert found["version"] in {version.name for version in store.versions("generator")}


def test_a_quarantined_proposer_trains_nothing(tmp_path: Path) -> None:
    config = small(proposer={"spec": "policy", "share": 0.5}, budget={"tasks": 6}, probe={"each": 0})
    version = run(config, tmp_path / "one").metrics["proposer"]["version"]
    switched = config.model_copy(
        update={
            "curriculum": config.curriculum.model_copy(
                update={
                    "switch": config.curriculum.switch.model_copy(
                        update={"quarantined_generators": (version,)}
                    )
                }
            )
        }
    )
    outcome = run(switched, tmp_path / "two")
    assert outcome.metrics["proposer"]["accepted"] > 0
    assert outcome.metrics["training"]["quarantined"] == outcome.metrics["proposer"]["success"]["attempts"]


@pytest.mark.parametrize(
    ("proposer", "message"),
    [
        ({"spec": "planner"}, "got 'planner', allowed are policy"),
        ({"share": 1.0}, "proposer.share"),
        ({"mode": "prose"}, "proposer.mode"),
        ({"spek": "policy"}, "did you mean 'spec'"),
    ],
)
def test_bad_settings_are_one_line(proposer: dict[str, Any], message: str) -> None:
    with pytest.raises(EvolveError, match=message) as caught:
        EvolveConfig.from_data({**SMALL, "proposer": proposer}, where="x.toml")
    assert "\n" not in str(caught.value)


def test_a_rolled_back_run_asks_the_adapter_of_then() -> None:
    assert adapter_of("tiny@b5fd on transformers, adapter keys@3f2a") == "keys@3f2a"
    assert adapter_of("") == adapter_of("random-1") == ""
    assert pinned_spec("policy:keys", "keys@3f2a") == "policy:keys@3f2a"
    assert pinned_spec("policy", "base") == pinned_spec("policy", "") == "policy"
    assert pinned_spec("openai:m@http://x", "keys@3f2a") == "openai:m@http://x"
    assert model_specs("learner", None, "policy", "policy") == ["policy"]
    assert model_specs("policy:a", "policy", None) == ["policy:a", "policy"]
