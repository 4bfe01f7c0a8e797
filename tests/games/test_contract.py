"""What holds for every registered game, in every size and with every set-up listed here."""

import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from games.base import Game, State
from games.errors import BadOption, BadSeats, BadSeed, IllegalAction, MatchOver, RulesVersionMismatch
from games.registry import game_names, load_game
from games.rng import MAX_SEED, derive_seed
from games.spaces import space_from_data
from tests.games import playthrough

SETUPS: dict[str, list[dict[str, Any]]] = {
    "kuhn": [{}],
    "avalon": [
        {},
        {"lady": True},
        {"roles": "merlin,assassin", "speech_rounds": 0},
        {"roles": "merlin,percival,assassin,oberon", "lady": True, "speech_rounds": 2},
        {"roles": "", "speech_rounds": 0},
    ],
    "forge": [
        {"rounds": 2, "attempts": 1},
        {"mode": "duel", "rounds": 1, "attempts": 2, "prove": True},
        {"mode": "relay", "rounds": 1},
        {"mode": "relay", "rounds": 2, "hint_chars": 0, "leash": 3},
    ],
    "werewolf": [
        {},
        {"ties": "runoff", "reveal": False},
        {"roles": "werewolf=1", "speech_rounds": 0, "wolf_talk_rounds": 0},
        {"roles": "werewolf=2,seer=1,doctor=1,hunter=1,witch=1", "speech_rounds": 2, "wolf_talk_rounds": 2},
    ],
}
"""Options that the suite plays every game with; a game that is not listed is played with its defaults."""


def cases() -> list[Any]:
    return list(_cases())


def _cases() -> Iterator[Any]:
    for name in game_names():
        game = load_game(name)
        low, high = game.seats
        for index, options in enumerate(SETUPS.get(name, [{}])):
            for seats in range(low, high + 1):
                try:
                    game.new(seats=seats, options=options)
                except BadOption:
                    continue
                yield pytest.param(game, seats, options, id=f"{name}-{seats}-{index}")


@pytest.fixture(params=game_names())
def any_game(request: pytest.FixtureRequest) -> Game:
    return load_game(request.param)


def step(state: State, rng: random.Random) -> None:
    state.apply({seat: space.sample(rng) for seat, space in state.turns().items()})


def walk(game: Game, seats: int, options: dict[str, Any], seed: int) -> Iterator[State]:
    """Yield the state at every ply of random play, the last one included."""
    state = game.new(seed=seed, seats=seats, options=options)
    rng = random.Random(derive_seed(seed, "walk"))
    yield state
    while state.turns():
        step(state, rng)
        yield state


def knowledge(state: State, seat: int | None) -> tuple[Any, ...]:
    events = [event for event in state.history if event.visible_to(seat)]
    return events, state.view(seat), state.turns().get(-1 if seat is None else seat)


@pytest.mark.parametrize("game, seats, options", cases())
def test_random_play_ends_within_its_bound(game: Game, seats: int, options: dict[str, Any]) -> None:
    bound = game.max_plies(seats, game.parse_options(options))
    for seed in range(20):
        last = None
        for last in walk(game, seats, options, seed):
            assert (last.outcome() is None) == bool(last.turns())
        assert last is not None
        assert len(last.plies) <= bound
        outcome = last.outcome()
        assert outcome is not None
        assert len(outcome.returns) == len(outcome.teams) == len(outcome.roles) == seats
        assert outcome.teams == last.teams()
        assert outcome.roles == last.roles()
        assert set(outcome.teams) <= set(game.team_names)
        assert set(outcome.roles) <= set(game.role_names)
        assert {outcome.ended(seat) for seat in range(seats)} <= {"won", "lost", "drawn", "turn_limit"}
        assert last.history[-1].kind == "end"
        with pytest.raises(MatchOver):
            last.apply({})


@pytest.mark.parametrize("game, seats, options", cases())
def test_clone_and_save_round_trip_at_every_ply(game: Game, seats: int, options: dict[str, Any]) -> None:
    for seed in range(2):
        for state in walk(game, seats, options, seed):
            saved = json.loads(json.dumps(state.save()))
            loaded, twin = game.load(saved), state.clone()
            for other in (loaded, twin):
                assert other.save() == state.save()
                assert other.history == state.history
                assert other.turns() == state.turns()
                assert other.outcome() == state.outcome()
            before = json.dumps(state.save())
            rng, rng_again = random.Random(1), random.Random(1)
            for _ in range(3):
                if twin.turns():
                    step(twin, rng)
                    step(loaded, rng_again)
            assert json.dumps(state.save()) == before, "playing a clone changed the original"
            assert twin.history == loaded.history, "a loaded state goes on otherwise than a clone"


@pytest.mark.parametrize("game, seats, options", cases())
def test_view_is_the_fold_of_what_the_seat_may_see(game: Game, seats: int, options: dict[str, Any]) -> None:
    for seed in range(3):
        folded = {seat: game.view(seat) for seat in (None, *range(seats))}
        shown = 0
        for state in walk(game, seats, options, seed):
            for event in state.history[shown:]:
                for seat, view in folded.items():
                    if event.visible_to(seat):
                        view.update(event)
            shown = len(state.history)
            for seat, view in folded.items():
                assert state.view(seat) == view
        everything = game.view(None)
        for event in state.history:
            everything.update(event)


@pytest.mark.parametrize("game, seats, options", cases())
def test_resample_changes_hidden_facts_and_nothing_the_seat_can_see(
    game: Game, seats: int, options: dict[str, Any]
) -> None:
    changed = 0
    for seed in range(4):
        rng = random.Random(derive_seed(seed, "resample"))
        for ply, state in enumerate(walk(game, seats, options, seed)):
            if ply % 5 and state.turns():
                continue
            for seat in range(seats):
                other = state.resample(seat, rng)
                assert knowledge(other, seat) == knowledge(state, seat)
                assert knowledge(other, None) == knowledge(state, None)
                assert len(other.plies) == len(state.plies), "a turn's ply would tell the worlds apart"
                assert other.save() == game.load(other.save()).save()
                changed += other.history != state.history
                if seat == ply % seats:
                    while other.turns():
                        step(other, rng)
                    assert other.outcome() is not None
    assert changed, "no resample ever changed a hidden fact"


@pytest.mark.parametrize("game, seats, options", cases())
def test_an_action_gives_its_own_seat_a_new_event(game: Game, seats: int, options: dict[str, Any]) -> None:
    rng = random.Random(5)
    state = game.new(seed=5, seats=seats, options=options)
    while turns := state.turns():
        events = state.apply({seat: space.sample(rng) for seat, space in turns.items()})
        for seat in turns:
            assert any(event.visible_to(seat) for event in events), (
                f"seat {seat} learns nothing of its own action"
            )


@pytest.mark.parametrize("game, seats, options", cases())
def test_spaces_agree_with_their_schema(game: Game, seats: int, options: dict[str, Any]) -> None:
    rng = random.Random(6)
    seen = set()
    for state in walk(game, seats, options, 6):
        for space in state.turns().values():
            if space in seen:
                continue
            seen.add(space)
            schema = json.loads(json.dumps(space.schema()))
            jsonschema.Draft202012Validator.check_schema(schema)
            validator = jsonschema.Draft202012Validator(schema)
            assert space.contains(space.default)
            assert validator.is_valid(json.loads(json.dumps(space.default)))
            assert space_from_data(json.loads(json.dumps(space.to_data()))) == space
            assert space.describe() and "\n" not in space.describe()
            for _ in range(10):
                action = space.sample(rng)
                assert space.contains(action)
                as_json = json.loads(json.dumps(action))
                assert validator.is_valid(as_json)
                assert space.from_json(as_json) == action
            for wrong in (None, 0, True, [], {}, "no such option", ["0", "0"], ["98", "99"], "x" * 200_000):
                assert validator.is_valid(wrong) == space.contains(space.from_json(wrong)), wrong


@pytest.mark.parametrize("game, seats, options", cases())
def test_same_seed_same_match_whatever_else_runs(game: Game, seats: int, options: dict[str, Any]) -> None:
    alone = [state.save() for state in walk(game, seats, options, 0)]
    mixed = []
    others = walk(game, game.seats[0], {}, 1)
    for state in walk(game, seats, options, 0):
        random.seed(len(mixed))
        random.random()
        mixed.append(state.save())
        next(others, None)
    assert mixed == alone


@pytest.mark.parametrize("game, seats, options", cases())
def test_events_are_plain_data_and_name_real_seats(game: Game, seats: int, options: dict[str, Any]) -> None:
    for seed in range(3):
        *_, state = walk(game, seats, options, seed)
        for event in state.history:
            assert json.loads(json.dumps(event.data)) == event.data, "event data is not plain JSON"
            if event.audience is not None:
                assert set(event.audience) <= set(range(seats))
            if event.kind == "chance":
                assert event.audience == ()
            sentence = game.narrate(event)
            assert sentence is None or (sentence and "\n" not in sentence)


@pytest.mark.parametrize("game, seats, options", cases())
def test_who_is_known_to_be_asked_is_asked_and_what_comes_of_it_is_seen(
    game: Game, seats: int, options: dict[str, Any]
) -> None:
    for seed in range(4):
        state, rng = game.new(seed=seed, seats=seats, options=options), random.Random(seed)
        readers = (None, *range(seats))
        views = {reader: game.view(reader) for reader in readers}
        told = 0
        while True:
            known: dict[int | None, tuple[int, ...]] = {}
            for reader, view in views.items():
                for event in state.history[told:]:
                    if event.visible_to(reader):
                        view.update(event)
                known[reader] = view.asked(state.options)
                assert set(known[reader]) <= set(state.turns()), (reader, len(state.plies))
            if not state.turns():
                break
            told = len(state.history)
            step(state, rng)
            for reader, asked in known.items():
                news = [event for event in state.history[told:] if event.visible_to(reader)]
                assert news or not asked, (reader, len(state.plies))
        assert set(known.values()) == {()}


def test_seed_zero_is_a_seed(any_game: Game) -> None:
    first = [any_game.new(seed=0).history for _ in range(2)]
    assert first[0] == first[1]
    assert any(any_game.new(seed=seed).history != first[0] for seed in range(1, 20))


def test_apply_refuses_what_is_not_a_turn_and_changes_nothing(any_game: Game) -> None:
    state = any_game.new(seed=2)
    before = state.save()
    seats = list(state.turns())
    space = state.turns()[seats[0]]
    for actions in (
        {},
        {99: space.default},
        dict.fromkeys(seats, ("98", "99")),
        dict.fromkeys(seats),
        {**{seat: s.default for seat, s in state.turns().items()}, 99: space.default},
    ):
        with pytest.raises(IllegalAction) as raised:
            state.apply(actions)
        assert "\n" not in str(raised.value)
        assert state.save() == before


def test_setups_are_checked(any_game: Game) -> None:
    low, high = any_game.seats
    for seats in (low - 1, high + 1, -1, True, "5", 2.0):
        with pytest.raises(BadSeats):
            any_game.new(seats=seats)
    for seed in (-1, MAX_SEED + 1, 1.5, "0", None, True):
        with pytest.raises(BadSeed):
            any_game.new(seed=seed)
    with pytest.raises(BadOption, match="no_such_option"):
        any_game.new(options={"no_such_option": 1})


def test_states_of_other_rules_are_refused(any_game: Game) -> None:
    saved = any_game.new().save()
    with pytest.raises(RulesVersionMismatch):
        any_game.load(saved | {"version": "0"})


def test_rules_name_their_source(any_game: Game) -> None:
    assert "Source" in any_game.rules
    assert any_game.rules.startswith(f"# {any_game.title}")


def test_a_wrong_option_is_one_clear_line(any_game: Game) -> None:
    for name in any_game.options_type.model_fields:
        with pytest.raises(BadOption) as raised:
            any_game.new(options={name: {"no": ["such"]}})
        message = str(raised.value)
        assert message.startswith(f"{any_game.name} option {name}") and "\n" not in message
        assert "Input should" not in message and "no" in message


def test_option_texts_are_stated(any_game: Game) -> None:
    for name, field in any_game.options_type.model_fields.items():
        assert field.description, f"option {name} is not described"


def test_golden_playthrough(any_game: Game) -> None:
    golden = playthrough.path(any_game.name)
    assert golden.exists(), f"{golden} is missing: python -m tests.games.playthrough {any_game.name}"
    assert playthrough.lines(any_game) == golden.read_text(encoding="utf-8").splitlines()
