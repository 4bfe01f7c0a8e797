from agents.curriculum.rows import MemoryInRam, TaskRow
from tests.agents.curriculum.helpers import AXES, row


def test_near_misses_come_by_progress_then_newest() -> None:
    memory = MemoryInRam(window=4)
    for number, (success, progress) in enumerate(
        [(False, 0.99), (False, 0.2), (True, 1.0), (False, 0.8), (False, 0.8), (False, 0.5)]
    ):
        memory.add_attempt(row(number, success=success, progress=progress))
    assert [one.number for one in memory.near_misses("open", limit=3)] == [4, 3, 5]
    assert memory.near_misses("fetch", limit=3) == []


def test_solved_tasks_come_longest_untouched_first_each_once() -> None:
    memory = MemoryInRam()
    for number, (task, success) in enumerate(
        [("a", True), ("b", True), ("c", False), ("a", False), ("d", True), ("b", True)]
    ):
        memory.add_attempt(row(number, task=task, success=success))
    assert [(one.task, one.number) for one in memory.solved("open", limit=9)] == [
        ("a", 0),
        ("d", 4),
        ("b", 5),
    ]
    assert [one.task for one in memory.solved("open", limit=1)] == ["a"]


def test_the_newest_rows_come_oldest_first() -> None:
    memory = MemoryInRam()
    for number in range(4):
        memory.add_attempt(row(number, skill="open" if number % 2 else "fetch"))
        memory.add_task(TaskRow(number, f"t{number}", "open", (), AXES.balanced(1)))
    assert [one.number for one in memory.attempts(limit=2)] == [2, 3]
    assert [one.number for one in memory.attempts(skill="fetch", limit=9)] == [0, 2]
    assert [one.task for one in memory.tasks(limit=3)] == ["t1", "t2", "t3"]
    assert memory.seen("t0")
    assert not memory.seen("t9")
    assert memory.task("t0") is None
