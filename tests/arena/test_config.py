import json
from pathlib import Path
from typing import Any

import pytest

from arena.config import load, processors, walk
from arena.errors import ConfigError


def values(**extra: Any) -> dict[str, tuple[Any, str]]:
    return {key: (value, origin) for key, value, origin, _ in load(**extra).rows()}


def test_later_sources_win_and_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert {origin for _, origin in values().values()} == {"default"}
    assert values()["home"] == (Path("arena-data"), "default")
    assert values()["match.retries"] == (2, "default")
    Path("arena.toml").write_text('home = "one"\n[match]\nretries = 0\ndeadline_s = 5\n')
    monkeypatch.setenv("ARENA_MATCH__RETRIES", "3")
    monkeypatch.setenv("ARENA_HOME", "two")
    found = values(flags={"home": Path("three"), "tournament.concurrency": None})
    assert found["match.deadline_s"] == (5.0, "file arena.toml")
    assert found["match.retries"] == (3, "environment ARENA_MATCH__RETRIES")
    assert found["home"] == (Path("three"), "flag --home")
    assert found["tournament.concurrency"] == (processors(), "default")


def test_a_named_file_is_read_instead(tmp_path: Path) -> None:
    Path("arena.toml").write_text("[match]\nretries = 0\n")
    Path("other.toml").write_text("[match]\ndeadline_s = 1.5\n")
    found = values(file=Path("other.toml"))
    assert found["match.deadline_s"] == (1.5, "file other.toml")
    assert found["match.retries"] == (2, "default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[match]\nretrys = 1\n", "file arena.toml: unknown key 'match.retrys' (did you mean 'retries'?)"),
        (
            "[mach]\nretries = 1\n",
            "unknown key 'mach' (did you mean 'match'?); allowed are: home, tournament",
        ),
        ("[match]\nretries = -1\n", "match.retries: got -1, it should be greater than or equal to 0"),
        ("[match]\ndeadline_s = 0\n", "match.deadline_s: got 0, it should be greater than 0"),
        ("[match]\ndeadline_s = nan\n", "match.deadline_s: got nan"),
        ("[tournament]\nconcurrency = 'many'\n", "tournament.concurrency: got 'many'"),
        ("match = 3\n", "match: got 3, it should be a table"),
        ("home = 3\n", "home: got 3, it should be a path in quotation marks"),
        ("[mach]\nretries = 1\n", "file arena.toml: unknown key 'mach' (did you mean 'match'?)"),
        ("[match\n", "arena.toml: no valid TOML: expected ']'"),
    ],
)
def test_bad_files_give_one_line(text: str, message: str) -> None:
    Path("arena.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_environment_gives_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_MATCH__RETRIES", "few")
    with pytest.raises(ConfigError, match=r"environment ARENA_MATCH__RETRIES: match.retries: got 'few'"):
        load()
    monkeypatch.delenv("ARENA_MATCH__RETRIES")
    monkeypatch.setenv("ARENA_TOURNAMENT__CONCURENCY", "2")
    with pytest.raises(ConfigError, match=r"did you mean 'concurrency'"):
        load()
    monkeypatch.delenv("ARENA_TOURNAMENT__CONCURENCY")
    monkeypatch.setenv("ARENA_MATCH", "{")
    with pytest.raises(ConfigError, match="environment"):
        load()


def test_a_variable_of_no_section_gives_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_MACH__RETRIES", "1")
    with pytest.raises(
        ConfigError, match=r"ARENA_MACH__RETRIES: unknown section 'mach' \(did you mean 'match'"
    ):
        load()
    monkeypatch.delenv("ARENA_MACH__RETRIES")
    monkeypatch.setenv("ARENA_TOKEN", "a variable of another kind")
    load()


def test_unreadable_files_give_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nosuch.toml: cannot read the file: No such file"):
        load(file=Path("nosuch.toml"))
    with pytest.raises(ConfigError, match="cannot read the file: Is a directory"):
        load(file=tmp_path)
    Path("latin.toml").write_bytes(b'home = "\xe9"\n')
    with pytest.raises(ConfigError, match="no UTF-8 text"):
        load(file=Path("latin.toml"))


def test_config_show_prints_every_value(arena: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_MATCH__RETRIES", "0")
    shown = arena("config", "show", "--json", "--home", "elsewhere")
    assert shown.exit_code == 0
    data = json.loads(shown.stdout)
    assert data["match.retries"] == {"value": 0, "from": "environment ARENA_MATCH__RETRIES"}
    assert data["home"] == {"value": "elsewhere", "from": "flag --home"}
    assert set(data) == {key for key, _, _ in walk(load().settings)}
    people = arena("config", "show")
    assert all(key in people.stdout for key in data)
