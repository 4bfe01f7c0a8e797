from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadPlayer, PlayerCannotPlay
from arena.errors import ConfigError, ScheduleError, SprtError, TournamentError
from arena.tournament_file import Overrides, default_data, read_tournament
from games.errors import ArenaError, BadOption, BadSeats

FILE = """
seed = 7
format = "gauntlet"
matches = 10
seating = "mixed"

[players]
a = "scripted"
b = "random"

[games.avalon]
seats = 6
matches = 4

[games.kuhn]
"""


TWO = ["a=scripted", "b=random"]


def write(text: str = FILE) -> Path:
    path = Path("t.toml")
    path.write_text(text)
    return path


def test_the_default_plays_every_game_with_all_kinds_of_players() -> None:
    asked = read_tournament(None)
    assert [game.game for game in asked.games] == ["avalon", "werewolf", "kuhn"]
    assert [(player.name, player.spec) for player in asked.players] == [
        ("policy", "policy"),
        ("scripted", "scripted"),
        ("random", "random"),
    ]
    # Every pair meets equally often, at every seat and side.
    assert all(game.matches % 6 == 0 for game in asked.games)
    assert asked.planned == sum(
        game.get("matches", default_data()["matches"]) for game in default_data()["games"].values()
    )


def test_a_file_says_what_is_played() -> None:
    asked = read_tournament(write())
    assert (asked.seed, asked.format, asked.planned) == (7, "gauntlet", 14)
    assert [(g.game, g.seats, g.matches, g.seating) for g in asked.games] == [
        ("avalon", 6, 4, "mixed"),
        ("kuhn", 2, 10, "mixed"),
    ]


def test_flags_replace_what_they_name() -> None:
    asked = read_tournament(
        write(),
        overrides=Overrides(
            games=["avalon", "avalon"],
            players=["x=random", "y=random", "z=random"],
            seats=5,
            matches=2,
            format="swiss",
            seating="sides",
            seed=0,
            options={"avalon.lady": "true", "speech_rounds": "2"},
        ),
    )
    (game,) = asked.games
    assert (asked.seed, asked.format, [player.name for player in asked.players]) == (
        0,
        "swiss",
        ["x", "y", "z"],
    )
    assert (game.seats, game.matches, game.seating) == (5, 2, "sides")
    assert (game.options["lady"], game.options["speech_rounds"]) == (True, 2)


def test_the_hash_is_of_what_decides_the_matches_and_nothing_else() -> None:
    base = read_tournament(write()).hash()
    assert read_tournament(write(FILE + "# a comment\n")).hash() == base
    assert read_tournament(write(), overrides=Overrides(seed=7, matches=None)).hash() == base
    changed = [
        read_tournament(write(), overrides=Overrides(**change)).hash()
        for change in (
            {"seed": 8},
            {"matches": 11},
            {"format": "swiss"},
            {"seating": "auto"},
            {"seats": None, "games": ["kuhn"]},
            {"players": ["a=random", "b=random"]},
            {"options": {"avalon.speech_rounds": "2"}},
        )
    ]
    changed.append(read_tournament(write(), retries=0).hash())
    assert len({base, *changed}) == 1 + len(changed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sead = 1", "t.toml: unknown key 'sead' (did you mean 'seed'?); allowed are: seed, format"),
        ("[games.avalon]\nseets = 5", "t.toml: unknown key 'games.avalon.seets' (did you mean 'seats'?)"),
        ("seed = -1", "t.toml: seed: got -1, it should be greater than or equal to 0"),
        ("seed = 1.5", "seed: got 1.5"),
        ("matches = -1", "matches: got -1"),
        ("format = 'league'", "format: got 'league', it should be 'round-robin', 'swiss' or 'gauntlet'"),
        ("seating = 'sofa'", "seating: got 'sofa'"),
        ("sprt = [1, 2]", "sprt"),
        ("[players]\na = 3", "players.a: got 3"),
        ("players = 3", "players: got 3"),
        ("[games]\nkuhn = 1", "games.kuhn: got 1"),
        ("x = = 1", "t.toml: no valid TOML"),
        ("[games.kuhn]", "t.toml: no players; add [players] or --player NAME=SPEC"),
        ("[players]\na = 'random'", "t.toml: no games; add [games.NAME] or --game NAME"),
        (
            "[players]\na = 'random'\n[games.avalone]",
            "game: got 'avalone' (did you mean 'avalon'?), known are",
        ),
    ],
)
def test_bad_files_give_one_line(text: str, message: str) -> None:
    with pytest.raises((ConfigError, TournamentError)) as caught:
        read_tournament(write(text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"matches": -1}, TournamentError, "matches: got -1, allowed are whole numbers from 0"),
        (
            {"matches": 10_000_000},
            TournamentError,
            "matches: got 10000000, allowed are whole numbers from 0 to 1000000",
        ),
        (
            {"matches": 600_000, "games": ["avalon", "kuhn"]},
            TournamentError,
            "matches: got 1200000 in all games together, allowed are at most 1000000",
        ),
        ({"seats": 4}, BadSeats, "avalon seats: got 4, The Resistance: Avalon is played by 5 to 10"),
        ({"games": ["kuhn"], "seats": 5}, BadSeats, "kuhn seats: got 5"),
        (
            {"options": {"avalon.roles": "merlin,mordred,oberon,morgana,assassin"}},
            BadOption,
            "4 special evil roles",
        ),
        ({"options": {"avalon.colour": "red"}}, BadOption, "avalon option 'colour': unknown"),
        ({"options": {"roles": "merlin"}}, TournamentError, "--option roles: write GAME.OPTION=VALUE"),
        ({"options": {"chess.x": "1"}}, TournamentError, "GAME one of avalon, werewolf, kuhn"),
        ({"players": ["a=equilibrium", "b=random"]}, PlayerCannotPlay, "equilibrium plays kuhn, not avalon"),
        ({"players": ["a=random", "a=scripted"]}, BadPlayer, "'a' is used twice"),
        ({"sprt": "0,5"}, SprtError, "expected four numbers"),
        ({"sprt": "0,5,0.05,x"}, SprtError, "beta"),
        (
            {"sprt": "0,5,0.05,0.05", "players": ["a=random"]},
            TournamentError,
            "got 1 players, the test compares",
        ),
        ({"sprt": "0,5,0.05,0.05"}, TournamentError, "got 3 players, the test compares exactly two"),
        (
            {"sprt": "0,5,0.05,0.05", "players": TWO, "format": "swiss"},
            TournamentError,
            "got format 'swiss'",
        ),
        (
            {"sprt": "0,5,0.05,0.05", "players": TWO, "seating": "mixed"},
            TournamentError,
            "is seated 'mixed'",
        ),
        ({"seating": "seats"}, ScheduleError, "seating: got 'seats', avalon with 5 seats"),
    ],
)
def test_bad_flags_give_one_line(change: dict[str, Any], kind: type[ArenaError], message: str) -> None:
    with pytest.raises(kind) as caught:
        read_tournament(None, overrides=Overrides(**change))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
