"""The documentation says what the program does."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from agents.players import KINDS, MODELS
from arena.cli.main import cli
from arena.config import ENV_PREFIX, Settings, walk
from arena.contest import OnlineTournament
from arena.tournament_file import GameEntry, TournamentFile, read_tournament
from tests.generate_docs import (
    CLI_PAGE,
    CONFIGURATION_PAGE,
    TRAINING_PAGE,
    cli_page,
    configuration_page,
    training_page,
)

DOCS = CLI_PAGE.parent


def test_the_page_of_commands_is_what_help_says() -> None:
    assert CLI_PAGE.read_text(encoding="utf-8") == cli_page(), "run `make docs`"


def test_every_command_has_its_section() -> None:
    text = CLI_PAGE.read_text(encoding="utf-8")
    for name in cli.list_commands(click.Context(cli)):
        assert f"\n## arena {name}\n" in text


def test_every_setting_is_documented_with_its_variable_and_default() -> None:
    text = CONFIGURATION_PAGE.read_text(encoding="utf-8")
    assert text == configuration_page(), "run `make docs`"
    for key, _, description in walk(Settings()):
        assert description, f"{key} has no description"
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{key}` ")]
        assert f"`{ENV_PREFIX}{key.upper().replace('.', '__')}`" in row and description in row


def test_every_key_of_a_training_file_is_documented() -> None:
    text = TRAINING_PAGE.read_text(encoding="utf-8")
    assert text == training_page(), "run `make docs`"
    assert "None |" not in text, "every key has a description"
    for key in (
        "games.N.game",
        "budget.minutes",
        "learner.loss.kl",
        "tasks.questioning.enabled",
        "alarms.kl",
    ):
        assert f"| `{key}` |" in text


def test_every_key_of_a_tournament_file_is_documented() -> None:
    text = (DOCS / "tournaments.md").read_text(encoding="utf-8")
    for name in (*TournamentFile.model_fields, *GameEntry.model_fields):
        assert f"`{name}`" in text, name
    assert all(f"`{spec}`" in text for spec in (*KINDS, *MODELS))


def test_the_tournament_file_in_the_docs_is_read(tmp_path: Path) -> None:
    text = (DOCS / "tournaments.md").read_text(encoding="utf-8")
    block, online = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "t.toml"
    path.write_text(block)
    assert read_tournament(path).planned > 0
    OnlineTournament.model_validate(tomllib.loads(online)).check()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
