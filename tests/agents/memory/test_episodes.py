from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadExperience, MemoryFault
from agents.memory import Episode, Memory, Profile, Version
from games.tasks.check import Attempt, check, replay
from games.tasks.spec import DIMENSIONS
from tests.agents.memory.stocked import SKILLS, episode, plan, record, task

ACTORS, PURPOSES = ("planner", "policy"), ("train", "review")


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    attempt = Attempt(task(3).hash, plan(3)[:-1])
    written = Episode.of(
        task(3),
        id="first",
        attempt=attempt,
        verdict=check(task(3), attempt),
        actor="policy:tiny",
        policy="adapter-7",
        judge="rules-1",
        purpose="review",
        generation=4,
        time=1.5,
    )
    with Memory(tmp_path / "m.db") as memory:
        memory.add_versions(
            [Version("policy", "adapter-6"), Version("policy", "adapter-7", "adapter-6", {"loss": 0.5})]
        )
        memory.add_tasks([record(3, generator="knobs-2", strategy="bottleneck")])
        assert memory.add_episodes([written]) == ["first"]
    with Memory(tmp_path / "m.db", create=False) as memory:
        found = memory.episode("first")
        assert found is not None
        assert (found.episode, found.spec, found.skill, found.first) == (written, task(3), SKILLS[0], True)
        assert found.difficulty == dict(task(3).difficulty)
        assert not found.episode.success
        assert found.episode.steps == len(plan(3)) - 1
        assert found.episode.evidence["layers"][0]["name"] == "rules"
        assert memory.replayed("first") == replay(task(3), attempt.actions)
        assert {(version.kind, version.name) for version in memory.versions()} == {
            ("policy", "adapter-6"),
            ("policy", "adapter-7"),
            ("generator", "knobs-2"),
            ("judge", "rules-1"),
            ("actor", "policy:tiny"),
        }
        assert memory.versions("policy")[1].detail == {"loss": 0.5}
        entry = memory.task(task(3).hash)
        assert entry is not None
        assert (entry.record.strategy, entry.record.generator) == ("bottleneck", "knobs-2")


def test_the_same_id_again_changes_nothing(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    assert memory.add_episodes([episode("a"), episode("b"), episode("a", share=0)]) == ["a", "b"]
    before = (memory.profile(), memory.history(), memory.counts(), memory.task(task(0).hash))
    assert memory.add_episodes([episode("b", share=0), episode("a", actor="other", time=9.0)]) == []
    assert (memory.profile(), memory.history(), memory.counts(), memory.task(task(0).hash)) == before
    assert memory.add_tasks([record(0, skill="order")]) == []
    assert memory.add_episodes([]) == []


def test_a_replay_that_comes_to_another_state_is_told(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    states = list(episode("x").states)
    states[2] = "0" * 16
    memory.add_episodes([episode("e", states=tuple(states))])
    with pytest.raises(MemoryFault, match="at step 2 the replay comes to another state"):
        memory.replayed("e")
    with pytest.raises(BadExperience, match="is not in the memory"):
        memory.replayed("nobody")


def test_an_episode_needs_its_task_and_nothing_of_the_batch_is_kept(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    with pytest.raises(BadExperience, match=r"task '[0-9a-f]{12}' is not in the memory; add it first"):
        memory.add_episodes([episode("a", 0), episode("b", 1)])
    with pytest.raises(BadExperience, match="lesson 'l' is not in the memory"):
        memory.add_episodes([episode("a", 0), episode("b", 0, lessons=("l",))])
    with pytest.raises(BadExperience, match="evidence: only JSON values"):
        memory.add_episodes([episode("a", 0), episode("b", 0, evidence={"x": float("inf")})])
    assert memory.counts()["episodes"] == 0
    assert memory.profile().rows == ()
    assert memory.check() == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": ""}, "episode id"),
        ({"purpose": "fun"}, "allowed are train, test, review, trial"),
        ({"generation": -1}, "generation"),
        ({"steps": 1.5}, "steps"),
        ({"time": float("nan")}, "a finite number"),
        ({"progress": 1.1}, "allowed is 0 to 1"),
        ({"success": 1}, "True and False"),
        ({"states": ("abc",)}, "16 hexadecimal digits"),
        ({"actor": "x" * 201}, "1 to 200 characters"),
    ],
)
def test_an_episode_that_cannot_be_is_refused_in_one_line(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadExperience) as caught:
        episode(**{"key": "e", **({"key": fields["id"]} if "id" in fields else fields)})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_questions_that_mean_nothing_are_refused(memory: Memory) -> None:
    for ask in (
        lambda: memory.profile(purpose="fun"),
        lambda: memory.profile(window=0),
        lambda: memory.profile(since=-1),
        lambda: memory.tasks(order="best"),
        lambda: memory.tasks(limit=-1),
        lambda: memory.episodes(limit=10**9),
        lambda: memory.versions("weather"),
        lambda: memory.search("?!"),
        lambda: memory.set_status(["x"], "lost"),
        lambda: memory.set_status(["x"], "test"),
        lambda: memory.lessons(status="good"),
    ):
        with pytest.raises(BadExperience) as caught:
            ask()
        assert "\n" not in str(caught.value)
    with pytest.raises(BadExperience, match="allowed are hashed, minilm"):
        Memory(memory.path, vectors="magic")


def test_a_version_never_changes(memory: Memory) -> None:
    memory.add_tasks([record(0, generator="g1")])
    assert memory.add_versions([Version("generator", "g1", detail={"config": "abc"})]) == 0
    assert (
        memory.add_versions([Version("generator", "g1", detail={"config": "abc"}), Version("judge", "g1")])
        == 1
    )
    with pytest.raises(BadExperience, match="version generator g1: is in the memory with another"):
        memory.add_versions([Version("judge", "j2"), Version("generator", "g1", detail={"config": "abd"})])
    assert [version.name for version in memory.versions("judge")] == ["g1"]


tries = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(ACTORS),
        st.sampled_from(PURPOSES),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=40,
)
questions = st.fixed_dictionaries(
    {
        "actor": st.sampled_from([None, *ACTORS, "nobody"]),
        "purpose": st.sampled_from([None, *PURPOSES]),
        "since": st.sampled_from([None, 1, 3]),
        "window": st.sampled_from([None, 1, 3, 100]),
    }
)


@given(
    tries=tries,
    cuts=st.lists(st.integers(1, 15), min_size=1, max_size=4),
    asked=st.lists(questions, max_size=6),
)
def test_the_profile_is_what_counting_gives(
    tries: list[tuple[int, str, str, int, bool]], cuts: list[int], asked: list[dict[str, Any]]
) -> None:
    made = [
        episode(f"e{i}", seed, share=float(won), actor=actor, purpose=purpose, generation=generation)
        for i, (seed, actor, purpose, generation, won) in enumerate(tries)
    ]
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        memory.add_tasks([record(seed) for seed in range(6)])
        done = 0
        for cut in cuts * len(made):
            memory.add_episodes(made[max(0, done - 2) : done + cut])
            done += cut
        assert memory.check() == []
        assert memory.counts()["episodes"] == len(made)
        for question in asked:
            assert memory.profile(**question) == counted(made, **question), question
        for actor in (None, *ACTORS):
            for entry in memory.tasks(actor=actor):
                own = [e for e in made if e.task == entry.hash and actor in (None, e.actor)]
                assert entry.episodes == len(own)
                assert entry.successes == sum(e.success for e in own)
                assert entry.last_generation == (own[-1].generation if own else None)
                assert entry.progress == max((e.progress for e in own if not e.success), default=0)
        assert sum(row.episodes for row in memory.history()) == len(made)


def counted(
    made: list[Episode], *, actor: str | None, purpose: str | None, since: int | None, window: int | None
) -> Profile:
    by_task = {task(seed).hash: (SKILLS[seed % len(SKILLS)], task(seed)) for seed in range(6)}
    seen: set[tuple[str, str]] = set()
    kept: dict[str, list[tuple[Episode, bool]]] = defaultdict(list)
    for one in made:
        first = (one.actor, one.task) not in seen
        seen.add((one.actor, one.task))
        skill = by_task[one.task][0]
        if actor in (None, one.actor) and purpose in (None, one.purpose) and one.generation >= (since or 0):
            kept[skill].append((one, first))
    rows = []
    for skill in sorted(kept):
        own = kept[skill] if window is None else kept[skill][-window:]
        means = {
            name: pytest.approx(sum(dict(by_task[one.task][1].difficulty)[name] for one, _ in own) / len(own))
            for name in DIMENSIONS
        }
        rows.append(
            (
                skill,
                len(own),
                sum(one.success for one, _ in own),
                pytest.approx(sum(one.steps for one, _ in own) / len(own)),
                means,
                sum(first for _, first in own),
                sum(first and one.success for one, first in own),
            )
        )
    return Profile(tuple(rows))  # type: ignore[arg-type]


def test_the_table_and_the_weakest_skill(memory: Memory) -> None:
    assert memory.profile().weakest() is None
    memory.add_tasks([record(seed) for seed in range(3)])
    memory.add_episodes([episode(f"w{i}", i % 3) for i in range(9)])
    memory.add_episodes([episode(f"l{i}", 1, share=0) for i in range(9)])
    memory.add_episodes([episode("z", 2, share=0)])
    profile = memory.profile()
    weakest = profile.weakest()
    assert weakest is not None
    assert (weakest.skill, weakest.episodes, weakest.success) == ("open", 12, 0.25)
    assert profile.row("order") is not None
    assert profile.row("order").success == 0.75  # type: ignore[union-attr]
    head, *lines = profile.table().splitlines()
    assert head.split()[:3] == ["skill", "success", "episodes"]
    assert [line.split()[:3] for line in lines] == [
        ["fetch", "1.00", "3"],
        ["open", "0.25", "12"],
        ["order", "0.75", "4"],
    ]


def test_episodes_are_chosen_by_what_they_are(memory: Memory) -> None:
    memory.add_tasks([record(0), record(1)])
    memory.add_episodes(
        [
            episode("a", 0, generation=0),
            episode("b", 1, share=0.5, generation=1, actor="policy"),
            episode("c", 1, generation=1, purpose="review"),
        ]
    )

    def ids(**question: Any) -> list[str]:
        return [found.episode.id for found in memory.episodes(**question)]

    assert ids() == ["c", "b", "a"]
    assert ids(newest=False, limit=2) == ["a", "b"]
    assert ids(task=task(1).hash) == ids(skill="open") == ids(generation=1) == ["c", "b"]
    assert ids(success=False) == ids(actor="policy") == ["b"]
    assert ids(purpose="review", success=True) == ["c"]
    assert ids(actor="nobody") == []


def test_tasks_are_chosen_by_how_they_went(memory: Memory) -> None:
    memory.add_tasks(
        [record(seed, generation=seed, strategy="curve" if seed < 3 else "") for seed in range(5)]
    )
    shares = {0: (1, 1, 1, 0), 1: (1, 0, 1, 0), 2: (0.0, 0.0), 3: (0.9, 0.9)}
    memory.add_episodes(
        [
            episode(f"{seed}-{i}", seed, share=s, progress=s)
            for seed, all_ in shares.items()
            for i, s in enumerate(all_)
        ]
    )
    memory.add_episodes([episode("again", 0, share=1, progress=1.0, actor="policy", generation=7)])

    def seeds(**question: Any) -> list[int]:
        return [
            [task(seed).hash for seed in range(5)].index(entry.hash) for entry in memory.tasks(**question)
        ]

    assert seeds() == [4, 3, 2, 1, 0]
    assert seeds(order="old", limit=2) == [0, 1]
    assert seeds(order="learnable")[:2] == [1, 0]
    assert seeds(order="near_miss")[0] == 3
    assert seeds(order="stale") == [1, 2, 3, 0]
    assert seeds(order="stale", actor="planner") == [0, 1, 2, 3]
    assert seeds(solved=True, order="old") == [0, 1]
    assert seeds(solved=True, actor="policy") == [0]
    assert seeds(solved=False, order="old") == [2, 3]
    assert seeds(since=1, until=3, order="old") == [1, 2, 3]
    assert seeds(strategy="curve") == [2, 1, 0]
    assert memory.set_status([task(1).hash, task(2).hash], "quarantine") == 2
    assert memory.set_status([task(1).hash], "quarantine") == 0
    assert seeds(status="quarantine") == [2, 1]
    entry = memory.task(task(1).hash)
    assert entry is not None
    assert (entry.success, entry.learnability) == (0.5, 0.25)
    untried = memory.task(task(4).hash)
    assert untried is not None
    assert (untried.success, untried.learnability, untried.last_generation) == (None, 0.0, None)
    assert memory.task("nothing") is None


def test_a_near_miss_shows_in_the_progress() -> None:
    shares = [episode("x", 3, share=share).progress for share in (0.0, 0.9, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] < 1.0 == shares[2]


def test_check_finds_sums_that_are_none(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    memory.add_episodes([episode("a")])
    with memory.transaction() as connection:
        connection.execute("update totals set successes = successes + 1")
        connection.execute("delete from task_totals")
        connection.execute("update tasks set episodes = 5")
    assert memory.check() == [
        "totals: 1 rows are not the sums of the episodes",
        "task_totals: 1 rows are not the sums of the episodes",
        "tasks: 1 rows are not the sums of the episodes",
    ]


def test_everything_is_read_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("agents.memory.tasks", "agents.memory.episodes"):
        monkeypatch.setattr(f"{module}.PAGE", 2)
    with Memory(tmp_path / "m.db") as memory:
        memory.add_tasks([record(seed) for seed in range(5)])
        memory.add_episodes([episode(f"e{i}", i) for i in range(4)])
        assert list(memory.every_episode()) == memory.episodes(newest=False)
        assert list(memory.every_task()) == memory.tasks(order="old")
        assert memory.statuses()["tasks"] == {"train": 5, "test": 0, "quarantine": 0}
