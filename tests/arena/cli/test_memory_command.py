import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from agents.memory import Lesson, Memory
from arena.evolve import LOCK, MEMORY, RUNS
from arena.lock import hold
from games.errors import ArenaError
from tests.agents.memory.stocked import episode, record, task

Arena = Callable[..., Result]
LESSONS = [
    Lesson("aa1", "Take the key first.", "A grid task with a locked door.", "open", "success", ("e0",)),
    Lesson("aa2", "Run \x1b[31m away.", "A grid task with a patrol.", "dodge", "failure"),
    Lesson("b3", "Wait for it.", "A grid task with a patrol.", "dodge", "contrast"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with a store of three tasks, four attempts and three lessons, as if of a run."""
    where = tmp_path / "home"
    with Memory(where / RUNS / "first" / MEMORY) as store:
        store.add_tasks([record(0), record(1), record(2, status="quarantine")])
        store.add_lessons(LESSONS)
        store.add_episodes(
            [
                episode("e0", 0),
                episode("e1", 1, share=0.5),
                episode("e2", 0, share=0.3, lessons=("aa2",)),
                episode("e3", 2, generation=1),
            ]
        )
    return where


def test_stats_count_and_profile(arena: Arena, home: Path) -> None:
    found = json.loads(arena("memory", "stats", "--home", home, "--check", "--json").stdout)
    assert found["counts"]["episodes"] == 4 and found["problems"] == []
    assert found["tasks"] == {"train": 2, "test": 0, "quarantine": 1}
    assert found["lessons"] == {"active": 3, "merged": 0, "retired": 0, "evicted": 0}
    rows = {row["skill"]: (row["episodes"], row["success"]) for row in found["profile"]}
    assert rows == {"fetch": (2, 0.5), "open": (1, 0.0), "order": (1, 1.0)}
    late = json.loads(arena("memory", "stats", "--home", home, "--since", 1, "--json").stdout)
    assert [row["skill"] for row in late["profile"]] == ["order"]
    shown = arena("memory", "stats", "--home", home).output
    assert "4 attempts" in shown and "fetch" in shown
    assert "no attempts of that sort" in arena("memory", "stats", "--home", home, "--actor", "none").output


def test_stats_say_which_sums_are_wrong(arena: Arena, home: Path) -> None:
    with Memory(home / RUNS / "first" / MEMORY) as store, store.transaction() as connection:
        connection.execute("update totals set successes = successes + 1")
    result = arena("memory", "stats", "--home", home, "--check")
    assert result.exit_code == 3 and "wrong: totals: 4 rows" in result.output


def test_search_by_words_and_by_a_task(arena: Arena, home: Path) -> None:
    found = json.loads(arena("memory", "search", "--home", home, "locked", "door", "--json").stdout)
    assert [one["id"] for one in found["lessons"]] == ["aa1"]
    line = json.dumps(task(1).to_data())
    like = json.loads(arena("memory", "search", "--home", home, "--like", "-", "--json", input=line).stdout)
    assert like["tasks"][0]["task"] == task(1).hash and like["tasks"][0]["similarity"] > 0.999
    shown = arena("memory", "search", "--home", home, "patrol")
    assert shown.exit_code == 0 and "\x1b" not in shown.output and "\\u001b" in shown.output


def test_what_is_exported_is_read_by_tasks(arena: Arena, home: Path) -> None:
    lines = arena("memory", "export", "--home", home).stdout
    assert [json.loads(line)["memory"]["id"] for line in lines.splitlines()] == ["e0", "e1", "e2", "e3"]
    checked = arena("tasks", "check", input=lines)
    assert [json.loads(line)["ok"] for line in checked.stdout.splitlines()] == [True, False, False, True]
    assert checked.exit_code == 3
    made = arena("memory", "export", "--home", home, "--what", "tasks").stdout
    assert arena("tasks", "check", input=made).exit_code == 0
    assert [json.loads(line)["memory"]["attempts"] for line in made.splitlines()] == [2, 1, 1]
    lessons = json.loads(arena("memory", "export", "--home", home, "--what", "lessons", "--json").stdout)
    assert [(one["id"], one["offered"]) for one in lessons] == [("aa1", 0), ("aa2", 1), ("b3", 0)]
    versions = arena("memory", "export", "--home", home, "--what", "versions").stdout
    assert {json.loads(line)["kind"] for line in versions.splitlines()} == {"actor", "generator"}


def test_review_shows_and_changes_lessons(arena: Arena, home: Path) -> None:
    found = json.loads(arena("memory", "review", "--home", home, "--json").stdout)
    assert [one["id"] for one in found["lessons"]] == ["aa2", "aa1", "b3"]
    assert [one["task"] for one in found["quarantine"]] == [task(2).hash]
    assert [one["task"] for one in found["rested"]] == [task(0).hash]
    changed = arena("memory", "review", "--home", home, "--lesson", "aa2=retired", "--json")
    assert [(one["id"], one["status"]) for one in json.loads(changed.stdout)] == [("aa2", "retired")]
    left = json.loads(arena("memory", "review", "--home", home, "--json").stdout)
    assert [one["id"] for one in left["lessons"]] == ["aa1", "b3"]
    assert "active" in arena("memory", "review", "--home", home, "--lesson", "aa2=active").output


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("review", "--lesson", "aa=active"), "lesson: got 'aa', 2 lessons begin with it"),
        (("review", "--lesson", "zz=active"), "lesson: got 'zz', the store has none"),
        (("review", "--lesson", "b3=merged"), "allowed are active and retired"),
        (("review", "--lesson", "b3"), "the form is NAME=VALUE"),
        (("search",), "WORDS or --like FILE is needed"),
        (("search", "key", "--like", "-"), "and not both"),
        (("search", "--like", "-"), "holds no task"),
        (("search", "***"), "at least one word is needed"),
        (("stats", "--run", "other"), "run: got 'other', which is no store"),
    ],
)
def test_bad_input_is_one_line(arena: Arena, home: Path, args: tuple[str, ...], line: str) -> None:
    result = arena("memory", *args, "--home", home, input="")
    assert result.exit_code == 2 and result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert line in said


def test_which_store_is_meant(arena: Arena, home: Path, tmp_path: Path) -> None:
    folder = home / RUNS / "first"
    for run in ("first", folder, folder / MEMORY):
        assert arena("memory", "stats", "--home", home, "--run", run).exit_code == 0
    none = arena("memory", "stats", "--home", tmp_path / "empty")
    assert none.exit_code == 2 and "has no run" in none.stderr
    Memory(home / RUNS / "second" / MEMORY).close()
    several = arena("memory", "stats", "--home", home)
    assert several.exit_code == 2 and "has 2 runs, --run says which: first, second" in several.stderr


def test_no_lesson_is_changed_while_its_run_goes_on(arena: Arena, home: Path) -> None:
    fault = ArenaError("taken")
    with hold(home / RUNS / "first", name=LOCK, mode=0o644, taken=fault, unusable=lambda _: fault):
        result = arena("memory", "review", "--home", home, "--lesson", "b3=retired")
        assert result.exit_code != 0 and "another process runs it" in result.stderr
        assert arena("memory", "review", "--home", home).exit_code == 0
