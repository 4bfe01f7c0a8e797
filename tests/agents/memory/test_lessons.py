import math

import pytest

from agents.errors import BadExperience
from agents.memory import Lesson, Memory, distil, situation
from games.tasks.check import Attempt
from tests.agents.memory.stocked import episode, plan, record, task


def lesson(
    key: str, text: str = "Take a key first.", when: str = "a task with a door", **fields: object
) -> Lesson:
    return Lesson(**{"id": key, "text": text, "when": when, "skill": "open", "kind": "success", **fields})  # type: ignore[arg-type]


def tried(memory: Memory, key: str, won: bool, *lessons: str, generation: int = 0) -> None:
    memory.add_episodes([episode(key, 1, share=float(won), lessons=lessons, generation=generation)])


def test_distilled_lessons_say_what_worked_what_failed_and_what_differed(memory: Memory) -> None:
    told = [
        episode("won", 3),
        episode("lost", 3, share=0.5),
        episode("still", 3, share=0),
        episode("other", 2),
    ]
    made = distil(task(3), told, skill="fetch")
    assert made == distil(task(3), reversed(told), skill="fetch")
    kinds = [one.kind for one in made]
    assert kinds[0] == "success"
    assert set(kinds) == {"success", "failure", "contrast"}
    for one in made:
        assert one.when == situation(task(3))
        assert one.skill == "fetch"
        assert set(one.sources) <= {"won", "lost", "still"}
        assert not task(3).goal.names() & set(one.text.split(", "))
    assert f"in {len(plan(3))} steps" in made[0].text
    assert distil(task(3), [episode("other", 2)]) == []
    assert memory.add_lessons(made) == [one.id for one in made]
    assert memory.add_lessons(made) == []
    assert [entry.lesson for entry in memory.lessons()] == made


def test_advice_is_what_suits_the_task(memory: Memory) -> None:
    assert memory.advise(task(3)) == []
    memory.add_lessons(
        [
            lesson("far", when="baking bread in an oven"),
            lesson("near", when=situation(task(3))),
            lesson("also", when=situation(task(3))),
        ]
    )
    assert [advice.lesson.id for advice in memory.advise(task(3))] == ["near", "also"]
    assert memory.advise(task(3))[0].similarity == pytest.approx(1, abs=1e-3)
    assert [advice.lesson.id for advice in memory.advise(task(3), k=1)] == ["near"]
    memory.add_tasks([record(1)])
    for i in range(3):
        tried(memory, f"e{i}", False, "near")
    assert [advice.lesson.id for advice in memory.advise(task(3))] == ["also", "near"]


def test_use_is_counted_from_episodes_against_the_rate_without_advice(memory: Memory) -> None:
    memory.add_tasks([record(1)])
    memory.add_lessons([lesson("l")])
    for i in range(3):
        tried(memory, f"plain{i}", False)
    tried(memory, "a", True, "l", "l", generation=5)
    tried(memory, "a", True, "l", generation=6)
    entry = memory.lesson("l")
    assert entry is not None
    assert (entry.offered, entry.succeeded, entry.last_used) == (1, 1, 5)
    assert entry.expected == pytest.approx(1 / 5)
    assert entry.variance == pytest.approx(4 / 25)
    assert entry.worth == pytest.approx((1 - 1 / 5) / 11)
    assert {row.advised: row.successes for row in memory.history()} == {False: 0, True: 1}


def test_what_hurts_is_retired_and_what_only_had_bad_luck_is_not(memory: Memory) -> None:
    memory.add_tasks([record(1)])
    memory.add_lessons([lesson("hurts"), lesson("lucky"), lesson("new")])
    for i in range(20):
        tried(memory, f"plain{i}", i % 2 == 0)
    for i in range(20):
        tried(memory, f"h{i}", i < 4, "hurts")
        tried(memory, f"l{i}", i < 9, "lucky")
    tried(memory, "n", False, "new")
    assert memory.retire() == ["hurts"]
    assert memory.retire() == []
    assert [entry.lesson.id for entry in memory.lessons()] == ["lucky", "new"]
    held = memory.lesson("hurts")
    assert held is not None
    assert held.status == "retired"
    assert held.succeeded - held.expected < -1.645 * math.sqrt(held.variance)


def test_eviction_takes_old_lessons_of_low_worth(memory: Memory) -> None:
    memory.add_tasks([record(1)])
    memory.add_lessons(
        [lesson("old"), lesson("used"), lesson("fresh", generation=9), lesson("useless", generation=9)]
    )
    tried(memory, "e1", True, "used", generation=9)
    tried(memory, "e2", False, "useless", generation=9)
    assert memory.evict(keep=9, generation=10) == []
    assert memory.evict(keep=2, generation=10) == ["old", "useless"]
    assert [entry.lesson.id for entry in memory.lessons()] == ["used", "fresh"]
    assert {entry.lesson.id for entry in memory.lessons(status="evicted")} == {"old", "useless"}
    assert memory.add_lessons([lesson("old")]) == []
    tried(memory, "late", True, "old", generation=10)


def test_lessons_that_say_the_same_become_one(memory: Memory) -> None:
    memory.add_tasks([record(1)])
    memory.add_lessons(
        [
            lesson("a", "Take a key first."),
            lesson("b", "Take a key first!"),
            lesson("c", "Take a key first.", kind="failure"),
            lesson("d", "Wait until the patrol has passed."),
            lesson("e", "Take a key first.", when="a corridor with a patrol in it"),
        ]
    )
    tried(memory, "e1", True, "a")
    tried(memory, "e2", True, "b")
    tried(memory, "e3", True, "b")
    assert memory.cluster() == {"a": "b"}
    assert memory.cluster() == {}
    kept, gone = memory.lesson("b"), memory.lesson("a")
    assert kept is not None
    assert gone is not None
    assert (kept.offered, kept.succeeded) == (3, 3)
    assert (gone.status, gone.merged_into) == ("merged", "b")
    tried(memory, "late", False, "a")
    after = memory.lesson("b")
    assert after is not None
    assert (after.offered, after.succeeded) == (4, 3)
    assert {entry.lesson.id for entry in memory.lessons()} == {"b", "c", "d", "e"}


def test_lessons_are_found_by_words(memory: Memory) -> None:
    memory.add_lessons([lesson("a"), lesson("b", "Wait until the patrol has passed.", when="hazards move")])
    assert [entry.lesson.id for entry in memory.search_lessons("patrols")] == ["b"]
    assert [entry.lesson.id for entry in memory.search_lessons("a door or patrol")] != []
    assert memory.search_lessons("xylophone") == []


def test_a_lesson_that_says_nothing_is_refused() -> None:
    for fields in ({"text": ""}, {"when": "x" * 4001}, {"kind": "joke"}, {"skill": ""}):
        with pytest.raises(BadExperience) as caught:
            lesson("l", **fields)  # type: ignore[arg-type]
        assert "lesson l" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_loss_and_an_illegal_action_have_their_own_words() -> None:
    told = [episode("odd", 3, share=0.5)]
    odd = Attempt(task(3).hash, ("fly",))
    illegal = [
        type(told[0])(id="i", task=odd.task, actions=odd.actions, success=False, verdict="illegal", actor="x")
    ]
    (made,) = distil(task(3), illegal)
    assert made.kind == "failure"
    assert "do only what is offered" in made.text
