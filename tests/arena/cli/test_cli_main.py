"""The command as a whole: help, errors, exit codes, and what goes to stdout and what does not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from arena.cli import main as cli_main
from arena.cli.main import COMMANDS, cli
from games.errors import ArenaError, UnknownGame


def commands(group: click.Group, *path: str) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += commands(command, *path, name)
    return found


ALL = commands(cli)


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_helps_are_those_of_the_commands(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help is not None
    assert command.help.splitlines()[0] == COMMANDS[name][1]


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_explains_itself_and_its_options(
    arena: Any, path: tuple[str, ...], command: Any
) -> None:
    found = arena(*path, "--help")
    assert found.exit_code == 0 and found.stderr == ""
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{' '.join(path)}: {option.opts[0]} has no help"
    assert "--debug" in found.stdout


def test_help_loads_nothing_heavy(command: list[str], environment: dict[str, str]) -> None:
    code = (
        "import sys, evoke_arena\n"
        "sys.argv = ['arena', '--help']\n"
        "try: evoke_arena.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'pydantic', 'rich', 'sqlite_utils', 'asyncio', 'networkx'}\n"
        "sys.stderr.write(','.join(sorted(heavy & sys.modules.keys())))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "Usage: arena" in found.stdout and found.stderr == ""


def test_version(arena: Any) -> None:
    found = arena("--version")
    assert found.exit_code == 0
    assert found.stdout.startswith("arena, version ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nosuch"], "Error: No such command 'nosuch' (see arena --help)"),
        (["play"], "Error: Missing argument 'GAME' (see arena play --help)"),
        (["play", "kuhn", "--nosuch"], "Error: No such option"),
        (["play", "kuhn", "--out", "-"], "Error: --out: got '-', a record needs a file"),
        (
            ["play", "kuhn", "--seed", "1.5"],
            "Error: Invalid value for '--seed': got '1.5', allowed are whole",
        ),
        (["play", "kuhn", "--seed", str(2**63)], "allowed are whole numbers from 0 to 9223372036854775807"),
        (["play", "chess"], "Error: game: got 'chess', known are avalon, forge, kuhn, werewolf"),
        (
            ["play", "avalon", "--players", "4"],
            "Error: avalon seats: got 4, The Resistance: Avalon is played by 5",
        ),
        (["play", "kuhn", "--players", "x"], "'x' is not a valid integer"),
        (
            ["play", "avalon", "--option", "roles=merlin,mordred,oberon,morgana,assassin"],
            "4 special evil roles",
        ),
        (["play", "avalon", "--option", "lady"], "Error: --option: got 'lady', the form is NAME=VALUE"),
        (["play", "avalon", "--option", "lady=1", "--option", "lady=0"], "'lady' is given twice"),
        (["play", "avalon", "--option", "colour=1"], "avalon option 'colour': unknown, allowed are: "),
        (["play", "kuhn", "--all", "human"], "got 2 people, one can play at a terminal"),
        (["play", "kuhn", "--seats", "human,random"], "a person needs a terminal to play at"),
        (["tournament", "--game", "kuhn", "--player", "human"], "a person plays with `arena join`"),
        (["play", "kuhn", "--all", "robot"], "Error: player: got 'robot', allowed are random"),
        (["play", "avalon", "--all", "equilibrium"], "equilibrium plays kuhn, not avalon"),
        (["play", "kuhn", "--seats", "random"], "kuhn seats: got 1"),
        (["play", "kuhn", "--seats", "random,"], "Error: player: got ''"),
        (
            ["play", "kuhn", "--seats", "random,random", "--players", "3"],
            "--seats names 2 players, --players says 3",
        ),
        (["play", "kuhn", "--seats", "random,random", "--all", "random"], "give either --seats or --all"),
        (["play", "kuhn", "--seats", "a=random,a=scripted"], "'a' stands for random and for scripted"),
        (["play", "kuhn", "--config", "nosuch.toml"], "nosuch.toml: cannot read the file"),
        (["games", "chess"], "Error: game: got 'chess'"),
        (["ratings", "--game", "chess"], "Error: game: got 'chess'"),
        (["tournament", "nosuch.toml"], "Error: nosuch.toml: cannot read the file: No such file"),
        (
            ["tournament", "--concurrency", "0"],
            "concurrency: got 0, it should be greater than or equal to 1",
        ),
        (["tournament", "--concurrency", "-3"], "concurrency: got -3"),
        (["tournament", "--matches", "-1"], "Error: matches: got -1, allowed are whole numbers from 0"),
        (["tournament", "--sprt", "1,2,3"], "Error: sprt: got '1,2,3', expected four numbers"),
        (["tournament", "--engine", "ray"], "Error: --engine ray: not in this version, allowed is local"),
        (["tournament", "--format", "league"], "'league' is not one of"),
        (["tournament", "--resume"], "--resume: no unfinished tournament of this configuration"),
        (["tournament", "--player", "a=random", "--player", "a=random"], "'a' is used twice"),
        (["reply", "check", "--space", "{", "--reply", "x"], "Error: --space: got '{', no JSON"),
        (
            ["reply", "check", "--space", "{}", "--reply", "x"],
            "Error: space kind: got None, allowed are choice",
        ),
        (
            ["reply", "check", "--space", '{"kind":"text","max_chars":1}'],
            "give either --reply TEXT or --reply-file",
        ),
        (["reply", "check", "--space", '{"kind":"text","max_chars":1}', "--reply-file", "no"], "'no'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arena: Any, args: list[str], message: str) -> None:
    found = arena(*args)
    assert found.exit_code == 2, found.output
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert not list(Path().iterdir()) or args == ["tournament", "--resume"]


def test_the_command_alone_prints_its_help(arena: Any) -> None:
    found = arena()
    assert found.exit_code == 2
    assert "Usage: arena" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UnknownGame("game: got 'x'"), 2, "Error: game: got 'x'"),
        (ArenaError("several\nlines"), 1, "Error: several lines"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (FileNotFoundError(2, "No such file or directory", "f"), 1, "Error: f: No such file or directory"),
        (ZeroDivisionError("oh"), 1, "Error: unexpected ZeroDivisionError: oh (run again with --debug"),
    ],
)
def test_every_error_leaves_as_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str
) -> None:
    assert cli_main.report(error) == code
    assert capsys.readouterr().err.startswith(line)


def test_debug_prints_the_traceback(arena: Any) -> None:
    plain, debug = arena("play", "chess"), arena("play", "chess", "--debug")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr and "UnknownGame" in debug.stderr
    assert plain.exit_code == debug.exit_code == 2
    assert arena("--debug", "play", "chess").stderr == debug.stderr


def test_a_closed_pipe_is_quiet(command: list[str], environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*command, "games", "avalon"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()
    assert errors == b""
    assert running.returncode in (0, 1)


def test_no_colour_where_stdout_is_no_terminal(process: Any, environment: dict[str, str]) -> None:
    for extra in ({}, {"NO_COLOR": "1"}):
        found = process("games", env={**environment, **extra})
        assert found.returncode == 0
        assert "\x1b" not in found.stdout
        assert max(map(len, found.stdout.splitlines())) <= 80


def test_logs_and_json_do_not_mix(process: Any) -> None:
    found = process("tournament", "--game", "kuhn", "--player", "random", "--matches", "4", "--json")
    assert found.returncode == 0
    assert isinstance(json.loads(found.stdout), dict)
