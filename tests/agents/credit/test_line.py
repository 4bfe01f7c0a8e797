"""The recorded line: its states are those of the match, and every decision stands where it was made."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.credit.line import Line, read_line, team_return
from agents.errors import BadCredit, RecordNotCredited
from games.base import Outcome
from games.referee import Input
from games.registry import load_game
from games.spaces import Action
from replays.errors import RecordDamaged
from replays.record import Damage, Record
from tests.agents.credit.labelling import play
from tests.replays.recording import encode, entries, footer, header, make, read, referee

GAMES = {"kuhn": 2, "avalon": 5, "werewolf": 7, "forge": 3}


def line_of(game: str, seed: int, *, messy: bool = False) -> Line:
    return read_line(read(make(game, seats=GAMES[game], seed=seed, messy=messy)))


def hand(*moves: Action | str, seed: int = 7, retries: int = 0) -> Record:
    """Return a hand of Kuhn poker; `forfeit S` and `timeout S` stand for what befalls a seat."""
    head = replace(header("kuhn", seed=seed), retries=retries)
    table = referee(head)
    made: list[Any] = list(table.opening())
    for move in moves:
        word, _, seat = str(move).partition(" ")
        at = int(seat) if seat else next(iter(table.turns()))
        cause = word if word in ("forfeit", "timeout") else None
        made += table.feed(Input(at, table.ply, None if cause else move, cause))
    return read(encode(head, made, footer(table)))


def test_a_hand_is_read_as_it_was_played() -> None:
    line = read_line(hand("check", "bet", "call"))
    assert line.game is load_game("kuhn") and line.seats == 2
    assert [state.line for state in line.states] == [(), ("check",), ("check", "bet")]  # type: ignore[attr-defined]
    assert line.final.line == ("check", "bet", "call")  # type: ignore[attr-defined]
    assert [[(taken.ply, taken.action) for taken in made] for made in line.taken] == [
        [(0, "check"), (2, "call")],
        [(1, "bet")],
    ]
    assert [taken.space.label for taken in line.taken[0]] == ["open", "answer"]
    assert {taken.forced for made in line.taken for taken in made} == {False}
    assert abs(line.outcome.returns[0]) == 2 and line.outcome == line.final.outcome()
    assert [event.kind for event in line.seen[0]] == ["card", "move", "move", "move", "showdown", "end"]
    assert line.seen[0][0] != line.seen[1][0], "each sees its own card"
    assert line.seen_before == ((1, 3), (2,))


@settings(max_examples=12)
@given(st.sampled_from(sorted(GAMES)), st.integers(0, 10_000), st.booleans())
def test_states_and_decisions_are_those_of_the_match(game: str, seed: int, messy: bool) -> None:
    record = read(make(game, seats=GAMES[game], seed=seed, messy=messy))
    line = read_line(record)
    assert record.footer is not None and line.outcome == record.footer.outcome
    assert len(line.states) == len(line.final.plies)
    decided: dict[tuple[int, int], Any] = {
        (taken.ply, taken.seat): taken for made in line.taken for taken in made
    }
    for ply, (state, actions) in enumerate(zip(line.states, line.final.plies, strict=True)):
        assert state.plies == line.final.plies[:ply]
        assert state.history == line.final.history[: len(state.history)]
        assert state.turns().keys() == actions.keys() == {seat for at, seat in decided if at == ply}
        for seat, action in actions.items():
            taken = decided[ply, seat]
            assert taken.action == action and taken.space == state.turns()[seat]
            assert taken.space.contains(action) and (not taken.forced or action == taken.space.default)
    # What the referee counted as forced is what is told as forced.
    forced = sum(taken.forced for taken in decided.values())
    assert forced == record.footer.counts.get("forced", 0)
    assert messy or not forced


@settings(max_examples=10)
@given(st.sampled_from(sorted(GAMES)), st.integers(0, 10_000))
def test_a_seat_had_seen_what_it_may_see_before_each_decision(game: str, seed: int) -> None:
    line = line_of(game, seed, messy=True)
    for seat in range(line.seats):
        assert list(line.seen[seat]) == [event for event in line.final.history if event.visible_to(seat)]
        before = [
            sum(event.visible_to(seat) for event in line.states[taken.ply].history)
            for taken in line.taken[seat]
        ]
        assert list(line.seen_before[seat]) == before == sorted(before)


def test_states_can_be_played_on_through_clones_without_touching_the_line() -> None:
    line = line_of("avalon", 3)
    for state in line.states:
        clone = state.clone()
        while turns := clone.turns():
            clone.apply({seat: space.default for seat, space in turns.items()})
        assert clone.outcome() is not None
    assert [len(state.plies) for state in line.states] == list(range(len(line.states)))


def test_an_answer_of_the_seats_own_is_not_forced_though_it_is_the_default() -> None:
    line = read_line(hand("check", "timeout 1"))
    assert [(taken.action, taken.forced) for made in line.taken for taken in made] == [
        ("check", False),
        ("check", True),
    ]


def test_a_seat_that_gave_up_in_its_turn_decides_nothing_more() -> None:
    line = read_line(hand("forfeit 0", "bet"))
    # One input ends the hand: the bet, and the fold of who is gone.
    assert [(taken.ply, taken.action, taken.forced) for taken in line.taken[0]] == [
        (0, "check", True),
        (2, "fold", True),
    ]
    assert [taken.forced for taken in line.taken[1]] == [False]
    assert [state.line for state in line.states] == [(), ("check",), ("check", "bet")]  # type: ignore[attr-defined]


def test_what_a_seat_decided_before_it_gave_up_stays_its_own() -> None:
    line = read_line(hand("check", "forfeit 0", "bet"))
    assert [(taken.ply, taken.forced) for taken in line.taken[0]] == [(0, False), (2, True)]


def test_a_seat_that_gave_up_after_it_answered_in_a_common_ply_keeps_that_answer() -> None:
    head = header("avalon", seats=5, seed=3)
    table = referee(head)
    made: list[Any] = list(table.opening())
    gone = None
    while turns := table.turns():
        seat, turn = next(iter(turns.items()))
        made += table.feed(Input(seat, turn.ply, turn.space.default))
        if gone is None and len(turns) > 1:
            gone = (seat, turn.ply)
            made += table.feed(Input(seat, turn.ply, None, "forfeit"))
    line = read_line(read(encode(head, made, footer(table))))
    assert gone is not None
    seat, ply = gone
    assert {taken.ply <= ply for taken in line.taken[seat] if not taken.forced} == {True}
    assert ply in {taken.ply for taken in line.taken[seat] if not taken.forced}
    assert all(taken.forced for taken in line.taken[seat] if taken.ply > ply)
    assert not any(taken.forced for other in range(5) if other != seat for taken in line.taken[other])


def test_an_answer_given_late_or_again_is_none() -> None:
    head = header("kuhn", seed=7)
    table = referee(head)
    made: list[Any] = list(table.opening())
    for given_input in (
        Input(0, 0, "no such move"),
        Input(0, 0, "bet"),
        Input(0, 0, "check"),
        Input(1, 0, "call"),
        Input(1, 1, "fold"),
    ):
        made += table.feed(given_input)
    line = read_line(read(encode(head, made, footer(table))))
    assert [[taken.action for taken in own] for own in line.taken] == [["bet"], ["fold"]]
    assert not any(taken.forced for own in line.taken for taken in own)


def outcome_of(line: Line, teams: tuple[str, ...], returns: tuple[float, ...]) -> Line:
    return replace(line, outcome=Outcome("end", returns, teams, ("r",) * len(teams)))


def test_teams_come_in_the_games_order_and_unknown_ones_after() -> None:
    line = line_of("avalon", 1)
    assert line.team_names == load_game("avalon").team_names == ("good", "evil")
    other = outcome_of(line, ("z", "evil", "a", "good", "good"), (1.0, 2.0, 3.0, 4.0, 6.0))
    assert other.team_names == ("good", "evil", "a", "z")
    assert outcome_of(line, tuple("zdamb"), (0.0,) * 5).team_names == tuple("abdmz")
    assert other.members("good") == (3, 4) and other.result("good") == 5.0
    assert other.members("z") == (0,) and other.result("z") == 1.0
    assert team_return(other.outcome, (0, 1, 2)) == 2.0
    assert other.default_team() == "good"
    assert outcome_of(line, ("good", "a", "a", "b", "b"), (0.0,) * 5).default_team() == "a"
    assert line_of("kuhn", 1).default_team() == "first", "of seats that are alone the first"


def test_a_team_that_is_not_there_is_refused_in_one_line() -> None:
    line = line_of("avalon", 1)
    for call in (line.members, line.result):
        with pytest.raises(BadCredit) as error:
            call("x" * 100)
        assert str(error.value) == f"team: got {'x' * 40!r}, this match has good, evil"


@given(st.integers(0, 5), st.integers(0, 1000))
def test_the_next_decision_of_a_seat(ply: int, seed: int) -> None:
    line = read_line(hand("check", "bet", "call")) if seed % 2 else line_of("kuhn", seed)
    for seat in range(2):
        later = [taken.ply for taken in line.taken[seat] if taken.ply >= ply]
        assert line.decides_from(seat, ply) == (later[0] if later else None)
        assert line.decides_from(seat) == line.taken[seat][0].ply


def test_a_record_of_another_game_or_other_rules_is_not_credited() -> None:
    record = hand("check", "check")
    with pytest.raises(RecordNotCredited, match=r"^game: got 'chess'[^\n]*$"):
        read_line(replace(record, header=replace(record.header, game="chess")))
    with pytest.raises(RecordNotCredited) as error:
        read_line(replace(record, header=replace(record.header, rules="9" * 100)))
    installed = load_game("kuhn").version
    assert str(error.value) == (
        f"the record was made under kuhn rules {'9' * 40}, installed are rules {installed}: "
        "it cannot be played on"
    )


def test_a_record_without_its_end_is_not_credited_and_a_bad_one_is_damaged() -> None:
    record = hand("check", "check")
    cut = replace(record, footer=None, damage=Damage(2, "the file ends", True))
    with pytest.raises(RecordNotCredited, match=r"^the record is cut short: [^\n]*no result to divide$"):
        read_line(cut)
    with pytest.raises(RecordDamaged, match=r"^event 2 is bad: its hash is wrong$"):
        read_line(replace(record, footer=None, damage=Damage(2, "its hash is wrong")))


def test_every_record_that_was_cut_is_refused_and_never_half_read() -> None:
    data = make("kuhn", seed=3)
    for end in range(len(data) // 4, len(data)):
        record = read(data[:end])
        if record.footer is None:
            with pytest.raises(RecordNotCredited, match="cut short"):
                read_line(record)


def test_what_the_rules_do_not_give_is_damage() -> None:
    head = header("kuhn", seed=7)
    made, end = entries(head)
    other = read(encode(replace(head, seed=8), made, end))
    with pytest.raises(RecordDamaged, match=r"^event 0 is bad: 'chance' differs from what the rules emit$"):
        read_line(other)
    won = replace(end, outcome=end.outcome._replace(returns=(9.0, -9.0)))
    with pytest.raises(RecordDamaged, match=r"is bad: the footer's outcome is not that of the match$"):
        read_line(read(encode(head, made, won)))
    with pytest.raises(RecordDamaged, match=r"is bad: [^\n]+$"):
        read_line(read(encode(replace(head, options={"deck": "huge"}), made, end)))
    first = next(place for place, entry in enumerate(made) if isinstance(entry, Input))
    with pytest.raises(RecordDamaged, match=r"is bad: seat: got 9, this match has seats 0 to 1$"):
        read_line(read(encode(head, [*made[:first], Input(9, 0, "bet"), *made[first:]], end)))


def test_a_match_of_given_decisions_has_them_in_its_line() -> None:
    record = play("kuhn", lambda state, seat, space: space.options[-1], seats=2, wrong=[1])
    line = read_line(record)
    assert [(taken.action, taken.forced) for taken in line.taken[0]] == [("bet", False)]
    assert [(taken.action, taken.forced) for taken in line.taken[1]] == [("fold", True)]
