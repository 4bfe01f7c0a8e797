import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.base import Bot, Seat
from agents.errors import BadPlayer, PlayerCannotPlay, PlayerError, PlayerNotAvailable
from agents.players import (
    KINDS,
    MODELS,
    NOT_YET,
    Player,
    agent_type,
    check_plays,
    make_agent,
    parse_player,
    parse_players,
)
from games.registry import game_names, load_game
from games.text import MAX_NAME_CHARS


def test_spec_alone_names_the_player() -> None:
    assert parse_player("random") == Player("random", "random")
    assert parse_player("a=scripted") == Player("a", "scripted")
    assert parse_player(" a = scripted ") == Player("a", "scripted")


@pytest.mark.parametrize("word", NOT_YET)
def test_known_words_that_cannot_be_seated_say_so(word: str) -> None:
    for text in (word, f"x={word}", f"{word}:model@http://host/?a=b", f"x={word}:model@http://host/?a=b"):
        with pytest.raises(
            PlayerNotAvailable, match=f"{word} players are not in this version; available are"
        ):
            parse_player(text)


def test_language_models_are_players_that_share_what_they_run_on() -> None:
    assert parse_player("policy:good@3") == Player("policy:good@3", "policy:good@3")
    assert parse_player("m=openai:x@http://h:1/v1") == Player("m", "openai:x@http://h:1/v1")
    assert parse_player("openai:x=y@http://h") == Player("openai:x=y@http://h", "openai:x=y@http://h")
    with pytest.raises(BadPlayer, match=r"needed is openai:MODEL@URL"):
        parse_player("m=openai:x")
    game = load_game("kuhn")
    for spec in ("policy", "openai:x@http://h"):
        check_plays(Player("m", spec), game="kuhn")
        with pytest.raises(PlayerNotAvailable, match="a language model plays in `arena play`"):
            make_agent(spec, Seat(game, 2, game.parse_options(None), 0, 7))
    assert all(kind.games() == game_names() for kind in MODELS.values())


def test_a_person_is_seated_elsewhere() -> None:
    for text in ("human", "Eve=human"):
        with pytest.raises(PlayerNotAvailable, match="a person plays with `arena join`"):
            parse_player(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "player: got '', allowed are random, scripted, equilibrium"),
        ("a=", "player: got ''"),
        ("robot", "player: got 'robot'"),
        ("a=b=random", "player: got 'b=random'"),
        ("random:fast", "random takes nothing after a colon"),
        ("planner:", "after planner: a skill from 0 to 1 is needed, as in planner:0.6"),
        ("planner:2", "after planner: a skill from 0 to 1"),
        ("a=planner:nan", "after planner: a skill from 0 to 1"),
        ("=random", "1 or more visible characters"),
        ("  =random", "1 or more visible characters"),
    ],
)
def test_bad_players_give_one_line(text: str, message: str) -> None:
    with pytest.raises(BadPlayer) as caught:
        parse_player(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_made_safe_and_short() -> None:
    name = parse_player("\x1b[31m<System>\n" + "x" * 10_000 + "=random").name
    assert len(name) <= MAX_NAME_CHARS
    assert name.isprintable() and "<" not in name


def test_names_that_would_be_shown_alike_are_refused() -> None:
    with pytest.raises(BadPlayer, match="'a' is used twice"):
        parse_players(["a=random", "a=scripted"])
    with pytest.raises(BadPlayer, match="is used twice"):
        parse_players(["x" * 10_000 + "1=random", "x" * 10_000 + "2=random"])
    assert [player.name for player in parse_players(["a=random", "b=random"])] == ["a", "b"]


@given(st.text(max_size=60))
def test_any_text_is_a_player_or_one_line(text: str) -> None:
    try:
        player = parse_player(text)
    except PlayerError as error:
        assert str(error).isprintable()
    else:
        assert player.name and player.name.isprintable() and player.spec.partition(":")[0] in KINDS | MODELS


@pytest.mark.parametrize("name", game_names())
@pytest.mark.parametrize("spec", KINDS)
def test_every_kind_plays_the_games_it_lists_and_no_other(spec: str, name: str) -> None:
    game = load_game(name)
    if name not in KINDS[spec].games():
        with pytest.raises(PlayerCannotPlay, match=f"not {name}; {name} is played by"):
            check_plays(Player("p", spec), game=name)
        return
    state = game.new(seed=1)
    agent = make_agent(spec, Seat(game, state.seats, state.options, 0, 7))
    assert isinstance(agent, agent_type(spec, game=name))
    assert isinstance(agent, Bot) and agent.instant


def test_random_and_scripted_play_every_game() -> None:
    assert KINDS["random"].games() == KINDS["scripted"].games() == game_names()
    assert KINDS["equilibrium"].games() == ["kuhn"]


def test_a_planner_s_skill_is_a_knob() -> None:
    game = load_game("forge")
    seat = Seat(game, 3, game.parse_options(None), 0, 7)
    assert parse_player("weak=planner:0.25") == Player("weak", "planner:0.25")
    weak, usual = make_agent("planner:0.25", seat), make_agent("planner", seat)
    assert getattr(weak, "skill", None) == 0.25 != getattr(usual, "skill", None)
    check_plays(Player("p", "planner:1"), game="forge")
    with pytest.raises(PlayerCannotPlay, match="not kuhn"):
        check_plays(Player("p", "planner:1"), game="kuhn")
