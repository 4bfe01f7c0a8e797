"""`arena serve` as a user calls it."""

import asyncio
import json
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from clients.protocol.messages import Error, Message, Turn
from replays.reader import read_record
from tests.arena.connected import Client

Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def serve(command: list[str], environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Run `arena serve --json …` in a process of its own; yield it with what it printed when it was ready."""

    @contextmanager
    def run(*args: object, **more: Any) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
        words = [
            "serve",
            "--port",
            "0",
            "--http-port",
            "0",
            "--home",
            str(tmp_path),
            "--json",
            *map(str, args),
        ]
        process = subprocess.Popen(
            [*command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            **more,
        )
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield process, json.loads(line)
        finally:
            process.kill()
            process.communicate()

    return run


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_says_where_it_listens_and_stops_on_a_signal(
    serve: Any, number: signal.Signals, code: int
) -> None:
    with serve() as (process, ready):
        assert set(ready) == {"websocket", "http", "home", "pid"}
        assert ready["pid"] == process.pid and ready["websocket"].startswith("ws://127.0.0.1:")
        with urllib.request.urlopen(f"{ready['http']}/ready") as answer:
            assert json.load(answer) == {"status": "ready"}
        process.send_signal(number)
        out, err = process.communicate()
        assert process.returncode == code and out == ""
        assert "Traceback" not in err and "go on after a restart" in err


def test_clients_are_told_that_it_stops_and_the_match_goes_on_after_a_restart(
    serve: Any, tmp_path: Path
) -> None:
    async def begin(url: str, process: subprocess.Popen[str]) -> Client:
        client = Client(url, seed=1)
        client.plays = False
        async with client:
            client.connection.join(game="kuhn", seats=2, name="p")
            await client.flush()
            await client.until(Turn)
            await asyncio.to_thread(process.send_signal, signal.SIGTERM)
            error = await client.until(Error)
            assert error.code == "shutdown"
            await client.socket.wait_closed()
            assert client.socket.close_code == 1012
        return client

    async def go_on(client: Client, url: str) -> Message:
        from clients.protocol.messages import Over

        client._url, client.plays = url, True
        (seat,) = client.connection.seats.values()
        assert seat.turn is not None
        client.connection.act(seat.seated.match, request=seat.turn.request, action=seat.turn.space["default"])
        async with client:
            return await client.until(Over)

    with serve("--fill-after-s", 0.05) as (process, ready):
        client = asyncio.run(begin(ready["websocket"], process))
        assert process.wait() == 0
    (path,) = tmp_path.rglob("*.arena")
    assert read_record(path).footer is None
    with serve() as (process, ready):
        asyncio.run(go_on(client, ready["websocket"]))
    record = read_record(path, strict=True)
    assert record.footer is not None
    told = [m for m in client.messages if m.type == "events"]
    assert [m.first for m in told] == sorted({m.first for m in told}), "nothing came twice"  # type: ignore[attr-defined]


def test_without_json_it_tells_people(
    command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    words = ["serve", "--port", "0", "--http-port", "0", "--home", str(tmp_path)]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Agents and spectators: ws://127.0.0.1:")
        assert process.stdout.readline().startswith("Pages and REST:        http://127.0.0.1:")
    finally:
        process.kill()
        process.communicate()


def test_it_warns_when_others_can_reach_it_without_tls(serve: Any) -> None:
    with serve("--host", "0.0.0.0") as (process, ready):
        assert ready["websocket"].startswith("ws://0.0.0.0:")
        process.terminate()
        _, err = process.communicate()
    warned = [line for line in err.splitlines() if line.startswith("Warning: ")]
    assert len(warned) == 1 and "without TLS" in warned[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "192.0.2.1"], "192.0.2.1 port 0: cannot listen: no such address on this machine"),
        (["--port", "70000"], "flag --port: server.port: got"),
        (["--tls-cert", "none.pem"], "--tls-cert: none.pem: there is no such file"),
        (["--tls-key", "none.pem"], "--tls-key: it goes with --tls-cert"),
        (["--deadline-s", "0"], "flag --deadline-s: server.deadline_s: got"),
        (["--tournament", "none.toml"], "none.toml: cannot read the file"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    process: Process, tmp_path: Path, words: list[str], told: str
) -> None:
    done = process("serve", "--port", 0, "--http-port", 0, "--home", tmp_path / "home", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert told in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and len([x for x in done.stderr.splitlines() if "Error" in x]) == 1


def test_a_port_in_use_is_one_line(process: Process, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for flag in ("--port", "--http-port"):
            other = {"--port": "--http-port", "--http-port": "--port"}[flag]
            done = process("serve", flag, port, other, 0, "--home", tmp_path)
            assert done.returncode == 2
            told = f"Error: 127.0.0.1 port {port}: cannot listen: the port is in use; take another, or 0 for a free one"
            assert done.stderr.splitlines() == [told]


def test_a_home_that_is_a_file_is_one_line(process: Process, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = process("serve", "--port", 0, "--http-port", 0, "--home", file)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"Error: --home {file}: cannot be written: it is a file"]


def test_a_tournament_file_is_checked_and_opened(
    serve: Any, arena: Callable[..., Result], tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('name = "cup"\ngame = "kuhn"\nmatches = 4\n')
    bad.write_text('name = "cup"\ngame = "kuhn"\nmatches = 4\nplayres = 2\n')
    result = arena("serve", "--tournament", bad, "--home", tmp_path)
    assert result.exit_code == 2 and "unknown key 'playres' (did you mean 'players'?)" in result.stderr
    with serve("--tournament", good) as (_, ready):
        with urllib.request.urlopen(f"{ready['http']}/api/tournaments") as answer:
            (row,) = json.load(answer)
        assert row["tournament"] == "cup" and row["game"] == "kuhn"


def test_help_is_quick_to_import(process: Process) -> None:
    done = process("serve", "--help")
    assert done.returncode == 0 and "--http-port" in done.stdout


def test_what_is_missing_to_serve_is_named(
    arena: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sys

    for name in list(sys.modules):
        if name.startswith("arena.serving"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "arena.serving", None)
    broken = ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp")

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == "arena.serving":
                raise broken

    monkeypatch.delitem(sys.modules, "arena.serving")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    result = arena("serve", "--home", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: aiohttp is not installed; `pip install 'evoke-arena[server]'` brings what a server needs\n"
    )
