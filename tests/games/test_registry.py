from importlib.metadata import EntryPoint

import pytest

from games import registry
from games.errors import UnknownGame
from games.registry import game_names, load_game


def test_unknown_game_names_those_there_are() -> None:
    with pytest.raises(UnknownGame, match=r"'chess', known are .*kuhn"):
        load_game("chess")


def test_a_game_is_loaded_once_and_holds_its_name() -> None:
    for name in game_names():
        assert load_game(name) is load_game(name)
        assert load_game(name).name == name


def test_foreign_games_come_by_entry_point_and_cannot_take_our_names(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = (
        EntryPoint("poker", "games.kuhn:Kuhn", registry.ENTRY_POINT_GROUP),
        EntryPoint("kuhn", "no.such.module:Game", registry.ENTRY_POINT_GROUP),
    )
    monkeypatch.setattr(registry, "_foreign", lambda: foreign)
    assert game_names()[-1] == "poker"
    assert game_names().count("kuhn") == 1
    load_game.cache_clear()
    try:
        assert load_game("poker").title == "Kuhn poker"
        assert load_game("kuhn").title == "Kuhn poker"
    finally:
        load_game.cache_clear()
