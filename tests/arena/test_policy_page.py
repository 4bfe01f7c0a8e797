"""docs/policy.md names every command, preset, back end, mode and setting that there is, and none that there is not."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import click

from agents.policy.presets import PRESETS, SMOLLM2_INSTALL
from agents.policy.settings import Backend, Mode, PolicySettings
from agents.policy.vllm_local import LORA_RANKS
from arena.cli.adapters import adapters
from arena.cli.main import cli
from arena.config import Settings, walk
from arena.policy_chat import PROBES
from arena.policy_serve import DEFAULT_PORT, KEY_ENV, MAX_BODY_BYTES

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_setting_that_is_named_exists() -> None:
    known = {key for key, _, _ in walk(Settings())}
    named = set(re.findall(r"`((?:policy|match)\.[a-z_0-9]+)`", TEXT))
    assert len(named) > 12 and named <= known, named - known


def test_every_choice_is_told_of() -> None:
    for word in (*PRESETS, *get_args(Backend), *get_args(Mode)):
        assert f"`{word}`" in TEXT, word
    assert SMOLLM2_INSTALL in TEXT
    for command in adapters.commands:
        assert f"arena adapters {command}" in TEXT, command


def test_commands_and_their_options_exist() -> None:
    blocks = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    assert len(lines) > 15
    for line in lines:
        assert line[0] == "arena"
        command: click.Command = cli
        words = line[1:]
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        options = {name for param in command.params for name in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_the_settings_in_the_page_are_read() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    PolicySettings.model_validate(tomllib.loads(block)["policy"])


def test_figures_are_those_of_the_program() -> None:
    plain = " ".join(TEXT.split())
    assert f"127.0.0.1:{DEFAULT_PORT}/v1" in plain and KEY_ENV in plain
    assert f"more than {MAX_BODY_BYTES >> 20} MiB" in plain and f"up to {PROBES} times" in plain
    assert f"({', '.join(map(str, LORA_RANKS))};" in plain
