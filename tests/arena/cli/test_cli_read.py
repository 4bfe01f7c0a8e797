"""`arena games`, `players`, `play`, `reply check`."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.players import KINDS, MODELS
from games.registry import game_names, load_game
from replays.reader import read_record
from replays.verify import verify_file

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "replies.jsonl").read_text().splitlines()
]


def test_games_as_json(arena: Any) -> None:
    data = json.loads(arena("games", "--json").stdout)
    assert [game["name"] for game in data] == game_names()
    for entry in data:
        game = load_game(entry["name"])
        assert entry["seats"] == list(game.seats)
        assert entry["teams"] == list(game.team_names)
        assert entry["simultaneous"] is game.simultaneous
        assert entry["title"] == game.title
        assert set(entry["options"]) == set(game.options_type.model_fields)
        defaults = {name: option["default"] for name, option in entry["options"].items()}
        assert game.parse_options(defaults) == game.parse_options(None)


@pytest.mark.parametrize("name", game_names())
def test_rules_are_printed_for_people_and_prompts(arena: Any, name: str) -> None:
    found = arena("games", name)
    game = load_game(name)
    assert found.stdout.startswith(game.rules.rstrip())
    assert all(found.stdout.count(f"\n- `{option}` (") == 1 for option in game.options_type.model_fields)
    assert found.stdout.count("\n## Options\n") == bool(game.options_type.model_fields)
    (entry,) = json.loads(arena("games", name, "--json").stdout)
    assert entry["rules"] == game.rules


def test_options_are_listed_with_what_they_allow(arena: Any) -> None:
    shown = arena("games", "werewolf").stdout
    for line in (
        "- `reveal` (true or false; default true): ",
        "- `speech_rounds` (0 to 5; default 1): ",
        "- `max_days` (1 to 100; default none): ",
        "- `ties` (none or runoff; default none): ",
        "- `roles` (default none): ",
        "Set them with `--option`, as in `arena play werewolf --option roles=…`.",
    ):
        assert f"\n{line}" in shown
    assert arena("games", "kuhn").stdout.endswith("No options.\n")


def test_players_as_json_and_for_people(arena: Any) -> None:
    data = json.loads(arena("players", "--json").stdout)
    assert {entry["player"]: entry["games"] for entry in data} == {
        **{spec: kind.games() for spec, kind in (KINDS | MODELS).items()},
        "human": game_names(),
    }
    assert all(spec in arena("players").stdout for spec in (*KINDS, *MODELS, "human"))


@pytest.mark.parametrize("name", game_names())
def test_play_as_json(arena: Any, name: str) -> None:
    found = arena("play", name, "--seed", "0", "--json")
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    assert (data["game"], data["seed"]) == (name, 0)
    assert list(data["counts"])[:5] == ["turns", "illegal", "unparsed", "timeouts", "forced"]
    assert verify_file(Path(data["replay"])).ok
    footer = read_record(Path(data["replay"])).footer
    assert footer is not None
    assert data["outcome"]["reason"] == footer.outcome.reason
    assert data["outcome"]["returns"] == list(footer.outcome.returns)
    assert data["outcome"]["teams"] == list(footer.outcome.teams)
    assert data["outcome"]["roles"] == list(footer.outcome.roles)


def test_the_same_seed_plays_the_same_match_and_no_seed_a_new_one(arena: Any) -> None:
    one, two = (json.loads(arena("play", "avalon", "--seed", "0", "--json").stdout) for _ in range(2))
    assert one["replay"] != two["replay"]
    assert Path(one["replay"]).read_bytes() == Path(two["replay"]).read_bytes()
    seeds = {json.loads(arena("play", "kuhn", "--json").stdout)["seed"] for _ in range(3)}
    assert len(seeds) == 3


def test_no_seat_and_no_spectator_reads_the_seed_in_a_record(arena: Any) -> None:
    arena("play", "kuhn", "--seed", "7331733", "--out", "r.arena")
    for reader in (("--public",), ("--seat", "0")):
        for form in ("jsonl", "text", "html"):
            found = arena("replay", "export", "r.arena", "--format", form, *reader)
            assert found.exit_code == 0 and "7331733" not in found.stdout, (reader, form)


def test_play_takes_players_options_and_a_place(arena: Any) -> None:
    found = arena(
        *("play", "avalon", "--seats", "x=scripted,random,random,random,random,x=scripted"),
        *("--option", "lady=true", "--out", "deep/r.arena", "--json"),
    )
    assert found.exit_code == 0, found.stderr
    header = read_record(Path("deep/r.arena")).header
    assert [seat.name for seat in header.seats] == ["x", "random", "random", "random", "random", "x"]
    assert header.options["lady"] is True
    assert json.loads(found.stdout)["replay"] == "deep/r.arena"
    again = arena("play", "avalon", "--out", "deep/r.arena")
    assert again.exit_code == 1
    assert (
        again.stderr == "Error: deep/r.arena: cannot write the record: the file exists; give another --out\n"
    )
    assert (
        len(
            json.loads(arena("play", "werewolf", "--players", "6", "--all", "random", "--json").stdout)[
                "players"
            ]
        )
        == 6
    )


@pytest.mark.parametrize("name", game_names())
def test_play_tells_the_match_in_sentences(arena: Any, name: str) -> None:
    found = arena("play", name, "--seed", "3", "--home", "h")
    assert found.exit_code == 0, found.stderr
    game = load_game(name)
    (path,) = Path("h").rglob("*.arena")
    said = [sentence for event in read_record(path).events() if (sentence := game.narrate(event)) is not None]
    assert said
    assert "\n".join(said) in found.stdout
    assert f"Record: {path}" in found.stdout


def test_play_on_a_full_disk(arena: Any) -> None:
    Path("home").write_text("")
    found = arena("play", "kuhn", "--home", "home")
    assert found.exit_code == 1
    assert len(found.stderr.splitlines()) == 1 and "cannot write the record" in found.stderr


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_replies_mean_what_the_cases_say(arena: Any, case: dict[str, Any]) -> None:
    Path("reply").write_bytes(case["reply"].encode("utf-8", "surrogatepass"))
    found = arena("reply", "check", "--space", json.dumps(case["space"]), "--reply-file", "reply", "--json")
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    if "action" in case["expect"]:
        assert data == case["expect"]
    else:
        assert data["failure"] == case["expect"]["failure"]
        assert data["reason"].isprintable() and data["reason"]


def test_a_reply_from_an_argument_from_stdin_and_for_people(arena: Any) -> None:
    space = '{"kind":"subset","options":["a","b","c"],"size":2}'
    given = arena("reply", "check", "--space", space, "--reply", '{"action": ["c", "a"]}', "--json")
    assert json.loads(given.stdout) == {"action": ["a", "c"]}
    piped = arena("reply", "check", "--space", space, "--reply-file", "-", input='{"action": ["c", "a"]}')
    assert piped.stdout == 'action: ["a", "c"]\n'
    assert arena("reply", "check", "--space", space, "--reply", "").stdout.startswith("unparsed: ")


def test_reply_bytes_that_are_no_text_are_unparsed(arena: Any) -> None:
    Path("reply").write_bytes(b"\xff\xfe\x00" * 9)
    space = '{"kind":"choice","options":["a","b"]}'
    found = arena("reply", "check", "--space", space, "--reply-file", "reply", "--json")
    assert json.loads(found.stdout)["failure"] == "unparsed"
