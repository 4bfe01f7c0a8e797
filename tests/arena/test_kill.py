"""Tournaments that are really killed, at moments chosen by a seed, and go on."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

from replays.verify import verify_file

ARGS = [
    "tournament",
    *("--game", "kuhn", "--game", "werewolf"),
    *("--player", "a=scripted", "--player", "b=random", "--player", "c=random"),
    *("--seed", "5", "--json"),
]


KILLS_ITSELF = """
import os, signal, sys

folder, records, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.argv[1:4] = []
seen = 0

def count(frame, event, argument):
    global seen, calls
    seen += 1
    if seen > 0 and seen % 100 == 0 and os.path.isdir(folder):
        if sum(name.endswith(".arena") for name in os.listdir(folder)) >= records:
            seen = -calls
    elif seen == 0:
        os.kill(os.getpid(), signal.SIGKILL)

sys.setprofile(count)
import evoke_arena
evoke_arena.main()
"""
"""The command, killed so many calls of functions after so many records are in their places: by no clock."""


@pytest.fixture
def kill_after(environment: dict[str, str]) -> Callable[..., bool]:
    """Run a command that is killed once `records` records are in their places; False if it ended before."""
    rng = random.Random("calls")

    def run(folder: Path, records: int, *args: str) -> bool:
        words = [folder, records, rng.randrange(1, 3000), *args]
        done = subprocess.run(
            [sys.executable, "-c", KILLS_ITSELF, *map(str, words)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode != 0

    return run


def finished(output: str) -> dict[str, Any]:
    """Return a tournament's result without what may differ between two runs."""
    data: dict[str, Any] = json.loads(output)
    del data["wall_s"], data["records"]
    return data


@pytest.mark.slow
@pytest.mark.parametrize(("concurrency", "matches", "kills"), [(1, 40, 6), (2, 60, 10)])
def test_killed_tournament_goes_on_and_loses_nothing(
    process: Any, kill_after: Any, tmp_path: Path, concurrency: int, matches: int, kills: int
) -> None:
    args = [*ARGS, "--matches", str(matches), "--concurrency", str(concurrency)]
    whole = process(*args, "--home", "whole")
    assert whole.returncode == 0, whole.stderr

    home = tmp_path / "killed"
    folder = home / "replays" / "t1"
    rng = random.Random(f"kills {concurrency}")
    moments = sorted(rng.sample(range(1, 2 * matches), kills))
    killed = 0
    for moment in moments:
        resume = ["--resume"] if folder.is_dir() else []
        if not kill_after(folder, moment, *args, "--home", str(home), *resume):
            break
        killed += 1
    assert killed >= kills // 2
    last = process(*args, "--home", home, "--resume")
    assert last.returncode == 0 or "no unfinished tournament" in last.stderr, last.stderr
    if last.returncode == 0:
        assert finished(last.stdout) == finished(whole.stdout)

    rows = list(Database(home / "arena.db").query("select tournament, number, status, record from matches"))
    assert sorted((row["tournament"], row["number"]) for row in rows) == [(1, n) for n in range(2 * matches)]
    assert {row["status"] for row in rows} == {"finished"}
    assert len(list(folder.glob("*.arena"))) == 2 * matches
    assert not list(folder.glob("*.part"))
    for row in rows:
        path = home / row["record"]
        assert verify_file(path).ok
        assert path.read_bytes() == (tmp_path / "whole" / row["record"]).read_bytes()


@pytest.mark.slow
def test_sequential_test_decides_the_same_after_a_kill(process: Any, kill_after: Any, tmp_path: Path) -> None:
    args = [
        *("tournament", "--game", "werewolf", "--player", "a=scripted", "--player", "b=random"),
        *("--matches", "400", "--sprt", "0,60,0.05,0.05", "--concurrency", "2", "--json"),
    ]
    whole = process(*args, "--home", "whole")
    assert whole.returncode == 0, whole.stderr
    result = finished(whole.stdout)
    assert result["sprt"]["werewolf"]["status"] == "accept_h1"
    assert result["matches"]["played"] == 2 * result["sprt"]["werewolf"]["pairs"] < 400

    home = tmp_path / "killed"
    folder = home / "replays" / "t1"
    played = result["matches"]["played"]
    for moment in (1, played // 2, played - 1):
        kill_after(folder, moment, *args, "--home", str(home), *(["--resume"] if folder.is_dir() else []))
    last = process(*args, "--home", home, "--resume")
    assert last.returncode == 0, last.stderr
    assert finished(last.stdout) == result
    assert len(list(folder.glob("*.arena"))) == played


@pytest.mark.slow
def test_interrupt_keeps_what_is_finished(
    command: list[str], environment: dict[str, str], process: Any, tmp_path: Path
) -> None:
    args = [*ARGS, "--matches", "1500", "--home", "home", "--concurrency", "2"]
    folder = tmp_path / "home" / "replays" / "t1"
    with subprocess.Popen(
        [*command, *args], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        while not folder.is_dir() or len(os.listdir(folder)) < 30:
            assert running.poll() is None
            time.sleep(0.001)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate()
    assert running.returncode == 130, errors
    assert output == ""
    assert "--resume goes on" in errors and "Traceback" not in errors
    database = Database(tmp_path / "home" / "arena.db")
    assert database["matches"].count > 0
    assert [row["status"] for row in database["tournaments"].rows] == ["interrupted"]
    done = process(*args, "--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["matches"] == {"planned": 3000, "played": 3000, "failed": 0}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="processes are looked up in /proc")
def test_no_worker_outlives_a_killed_command(
    command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    args = [*ARGS, "--matches", "5000", "--home", "home", "--concurrency", "2"]
    folder = tmp_path / "home" / "replays" / "t1"
    with subprocess.Popen([*command, *args], env=environment, stderr=subprocess.DEVNULL) as running:
        while not folder.is_dir() or len(os.listdir(folder)) < 30:
            assert running.poll() is None
            time.sleep(0.001)
        family = descendants(running.pid)
        assert len(family) >= 2
        running.send_signal(signal.SIGKILL)
    while any(map(alive, family)):
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    """Return the processes below `pid`."""
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [found for child in children for found in (child, *descendants(child))]


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
