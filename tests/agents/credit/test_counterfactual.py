"""Counterfactual credit: exact on a game whose worth is known, and on every game that which must always hold."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import fsum
from typing import Any

import pytest

from agents.base import Agent, Decision, Seat
from agents.credit.base import Credit, make_method
from agents.credit.counterfactual import LeaveOneOut, Shapley, resampled
from agents.credit.line import read_line
from agents.credit.replay import Cast, RandomReference, Replay, Span, leaves
from agents.errors import BadCredit, NotRebuilt, RecordNotCredited
from agents.players import make_agent
from games.referee import Turn
from games.rng import derive_seed
from replays.errors import RecordDamaged
from replays.record import Damage, Record
from tests.agents.credit.works import WorksOptions as Options
from tests.agents.credit.works import make, played, worth

pytestmark = pytest.mark.usefixtures("works")

GAMES: list[tuple[str, int, dict[str, Any]]] = [
    ("kuhn", 2, {}),
    ("avalon", 5, {}),
    ("werewolf", 7, {}),
    ("forge", 3, {"rounds": 1, "attempts": 2}),
    ("forge", 4, {"mode": "relay", "rounds": 1}),
]


def divide(record: Record, method: str = "shapley", *, team: str = "crew", **settings: Any) -> Credit:
    given = {"make": make, "reference": "keeper", **settings}
    return asyncio.run(make_method(method, **given).credit(record, team=team))


def shares(credit: Credit) -> list[float]:
    return [seat.credit for seat in credit.seats]


def crew(specs: list[str], **options: Any) -> Record:
    return played(specs, options=options)


def test_known_values_and_exact_sums() -> None:
    # Gifts of 1, 2 and 3, and 6 more where 0 and 1 both give: each of the two adds half of that.
    credit = divide(crew(["giver"] * 3, weights=[1.0, 2.0, 3.0], pairs=[[0, 1, 6.0]]))
    assert credit.result == 12.0
    assert credit.baseline == pytest.approx(0.0, abs=1e-12)
    assert shares(credit) == pytest.approx([4.0, 5.0, 3.0])
    assert fsum(shares(credit)) == credit.result
    assert [seat.contribution for seat in credit.seats] == pytest.approx([4.0, 5.0, 3.0])


def test_agrees_with_an_oracle_of_its_own() -> None:
    options = {
        "weights": [0.1, -0.7, 0.4, 0.25],
        "pairs": [[0, 2, 1.1], [1, 3, -0.3], [2, 3, 0.9]],
        "start": -2.0,
    }
    specs = ["giver", "giver", "keeper", "giver"]
    credit = divide(crew(specs, **options))
    parsed = Options.model_validate(options)

    def value(members: frozenset[int]) -> Fraction:
        gifts = [i for i in sorted(members) if specs[i] == "giver"]
        return Fraction(worth(parsed, [gifts]))

    orders = list(permutations(range(4)))
    total = [Fraction(0)] * 4
    for order in orders:
        for place, member in enumerate(order):
            total[member] += value(frozenset(order[: place + 1])) - value(frozenset(order[:place]))
    contributions = [float(v / len(orders)) for v in total]
    assert [seat.contribution for seat in credit.seats] == pytest.approx(contributions, abs=1e-12)
    assert credit.baseline == pytest.approx(-2.0)
    assert fsum(shares(credit)) == credit.result


def test_a_dummy_gets_nothing_whatever_the_baseline() -> None:
    record = crew(["giver", "giver", "giver"], weights=[1.0, 0.0, 2.0], start=-5.0)
    credit = divide(record)
    dummy = credit.seats[1]
    assert (dummy.credit, dummy.low, dummy.high, dummy.contribution) == (0.0, 0.0, 0.0, 0.0)
    assert fsum(shares(credit)) == credit.result == -2.0
    # A seat that does as the reference does is one as well.
    assert divide(crew(["giver", "keeper"], weights=[1.0, 2.0])).seats[1].credit == 0.0


def test_where_nothing_hangs_on_anybody_the_shares_are_equal() -> None:
    credit = divide(crew(["keeper"] * 4, weights=[1.0] * 4, start=3.0))
    assert shares(credit) == [0.75] * 4


def test_seats_that_can_be_exchanged_get_the_same() -> None:
    options = {"weights": [1.0, 1.0, 5.0], "pairs": [[0, 2, 0.7], [1, 2, 0.7]], "start": -0.3}
    credit = divide(crew(["giver"] * 3, **options))
    assert credit.seats[0].credit == pytest.approx(credit.seats[1].credit, abs=1e-12)
    assert credit.seats[0].contribution == credit.seats[1].contribution


def test_leave_one_out_is_what_the_result_loses() -> None:
    record = crew(["giver"] * 3, weights=[1.0, 2.0, 3.0], pairs=[[0, 1, 6.0]])
    credit = divide(record, "leave-one-out")
    assert shares(credit) == pytest.approx([7.0, 8.0, 3.0])
    assert credit.baseline is None


def test_equal_shares_are_equal() -> None:
    record = crew(["giver", "keeper", "giver"], weights=[1.0, 2.0, 3.0], rounds=2)
    credit = asyncio.run(make_method("equal").credit(record, team="crew"))
    assert shares(credit) == pytest.approx([8 / 3] * 3)
    assert fsum(shares(credit)) == credit.result
    assert [step.credit for step in credit.steps] == pytest.approx([4 / 3] * 6)


@pytest.mark.parametrize("method", ["shapley", "leave-one-out", "equal"])
def test_the_steps_of_a_seat_sum_to_its_share(method: str) -> None:
    record = crew(["giver", "keeper", "coin"], weights=[1.0, 2.0, 3.0], pairs=[[0, 2, 0.3]], rounds=4)
    given = {} if method == "equal" else {"make": make, "reference": "coin"}
    credit = asyncio.run(make_method(method, **given).credit(record, team="crew"))
    for seat in credit.seats:
        total = fsum(step.credit for step in credit.steps if step.seat == seat.seat)
        assert total == pytest.approx(seat.credit, abs=1e-15)
    assert [(step.ply, step.seat) for step in credit.steps] == [(p, s) for p in range(4) for s in range(3)]


def test_a_step_is_worth_what_it_adds_and_labelled_so() -> None:
    record = crew(["giver", "giver"], weights=[1.0, -2.0], rounds=3)
    credit = divide(record, step_replicates=12)
    assert [step.contribution for step in credit.steps] == [1.0, -2.0] * 3
    assert [step.label for step in credit.steps] == ["good", "bad"] * 3


def test_kept_by_the_reference_the_steps_sum_to_leave_one_out() -> None:
    record = crew(["giver", "coin"], weights=[1.0, 2.0], pairs=[[0, 1, 4.0]], rounds=3)
    credit = divide(record, "leave-one-out", play_on="reference", least=8, most=8, step_replicates=8)
    for seat in credit.seats:
        added = [step.contribution for step in credit.steps if step.seat == seat.seat]
        assert fsum(value for value in added if value is not None) == pytest.approx(seat.credit)


def test_sampled_orders_are_exact_where_members_only_add() -> None:
    weights = [1.0, -2.0, 3.0, 0.0, 0.5, 4.0]
    credit = divide(crew(["giver"] * 6, weights=weights, start=1.5), coalitions=3, steps=False)
    assert [seat.contribution for seat in credit.seats] == pytest.approx(weights)
    assert credit.seats[3].credit == 0.0
    assert fsum(shares(credit)) == credit.result


def test_sampled_orders_come_to_the_exact_value() -> None:
    options = {"weights": [1.0, 0.0, 0.5, 0.0], "pairs": [[0, 1, 3.0], [1, 2, -2.0], [0, 3, 1.0]]}
    record = crew(["giver"] * 4, **options)
    whole = divide(record, steps=False)
    sampled = divide(record, coalitions=1, error=0.0, most=60, steps=False)
    assert shares(sampled) == pytest.approx(
        shares(whole), abs=1e-9
    )  # pairs: an order and its reverse are enough


def test_replicates_end_at_the_stated_error() -> None:
    record = crew(["coin", "coin"], weights=[1.0, 1.0], rounds=4)
    wide = divide(record, reference="coin", error=2.5, most=400, steps=False)
    narrow = divide(record, reference="coin", error=0.5, most=400, steps=False)
    capped = divide(record, reference="coin", error=0.01, most=7, steps=False)
    assert wide.cost.replays < narrow.cost.replays < 400 * 3
    assert capped.cost.replays == 7 * 3
    for seat in narrow.seats:
        assert seat.low is not None and seat.high is not None
        assert 0 < seat.high - seat.low < 3.0


def test_the_same_seed_gives_the_same_credit() -> None:
    record = played(["scripted"] * 5, game="avalon", make=make_agent)
    settings = {"make": None, "reference": "random", "most": 4, "step_replicates": 1, "team": "good"}
    first, again, other = (divide(record, **settings, seed=seed) for seed in (1, 1, 2))
    assert (first.seats, first.steps) == (again.seats, again.steps)
    assert first.steps != other.steps


@pytest.mark.parametrize(("game", "seats", "options"), GAMES)
@pytest.mark.parametrize("hidden", ["fixed", "resampled"])
def test_shares_sum_to_the_result_in_every_game(
    game: str, seats: int, options: dict[str, Any], hidden: str
) -> None:
    record = played(["scripted"] * seats, game=game, options=options, make=make_agent)
    line = read_line(record)
    for team in line.team_names:
        credit = divide(
            record, team=team, make=None, reference="random", hidden=hidden, most=2, step_replicates=1
        )
        assert credit.result == line.result(team)
        assert fsum(shares(credit)) == pytest.approx(credit.result, abs=1e-15)
        assert {seat.seat for seat in credit.seats} == set(line.members(team))
        for seat in credit.seats:
            made = [step.credit for step in credit.steps if step.seat == seat.seat]
            assert len(made) == len(line.taken[seat.seat])
            assert not made or fsum(made) == pytest.approx(seat.credit)


class Echo(Agent):
    """Decides as the record says, whoever it is told to be."""

    instant = True
    line: Any

    def observe(self, events: Any) -> None:
        return

    async def act(self, turn: Turn) -> Decision:
        (found,) = [taken for taken in self.line.taken[turn.seat] if taken.ply == turn.ply]
        return Decision(found.action)


@pytest.mark.parametrize(("game", "seats", "options"), GAMES)
def test_a_reference_that_does_the_same_gives_the_same_match(
    game: str, seats: int, options: dict[str, Any]
) -> None:
    line = read_line(played(["scripted"] * seats, game=game, options=options, make=make_agent))
    echo = type("EchoHere", (Echo,), {"line": line})

    def never(seat: Seat) -> Agent:
        raise AssertionError("nobody left the line")

    for seat in range(seats):
        if line.taken[seat]:
            replay = Replay(line, Cast((never,) * seats, echo), spans={seat: Span()}, seed=1)
            assert replay.run() == line.outcome
            assert replay.state.history == line.final.history


def test_who_cannot_know_of_the_change_decides_as_recorded() -> None:
    options = {"mode": "relay", "rounds": 1}
    line = read_line(played(["scripted"] * 4, game="forge", options=options, make=make_agent))
    asked: set[int] = set()

    def own(seat: Seat) -> Agent:
        asked.add(seat.seat)
        return make_agent("scripted", seat)

    replay = Replay(line, Cast((own,) * 4, RandomReference), spans={0: Span(0, 1)}, seed=5)
    replay.run()
    # Blue cannot see what red does before both have ended the only leg.
    assert asked == {0, 2}
    for mine, recorded in zip(replay.state.plies, line.final.plies, strict=False):
        assert {s: mine[s] for s in (1, 3) if s in mine} == {s: recorded[s] for s in (1, 3) if s in recorded}


def test_an_agent_that_takes_over_knows_what_its_seat_saw() -> None:
    line = read_line(played(["scripted"] * 5, game="avalon", make=make_agent))
    seen: dict[int, list[Any]] = {}

    class Witness(Agent):
        instant = True

        def observe(self, events: Any) -> None:
            seen.setdefault(self.seat.seat, []).extend(events)

        async def act(self, turn: Turn) -> Decision:
            history = replay.state.history
            assert seen[turn.seat] == [event for event in history if event.visible_to(turn.seat)]
            return Decision(turn.space.default)

    middle = line.taken[0][len(line.taken[0]) // 2].ply
    replay = Replay(line, Cast((Witness,) * 5, RandomReference), spans={0: Span(middle, middle + 1)}, seed=5)
    replay.run()
    assert seen
    assert replay.state.plies[:middle] == line.final.plies[:middle]


def test_an_agent_that_fails_costs_its_turn() -> None:
    line = read_line(crew(["giver", "giver"], weights=[1.0, 1.0], rounds=3))

    class Broken(Agent):
        instant = True

        def observe(self, events: Any) -> None:
            return

        async def act(self, turn: Turn) -> Decision:
            if turn.attempt == 0:
                return Decision("take")
            raise ValueError

    replay = Replay(line, Cast((Broken,) * 2, Broken), spans={0: Span()}, seed=1)
    assert replay.run().returns == (1.0, 1.0)  # the other gave once, before it saw
    assert replay.counts.failures == 5


def test_agents_that_wait_are_played_together() -> None:
    class Waiting(Agent):
        def observe(self, events: Any) -> None:
            return

        async def act(self, turn: Turn) -> Decision:
            await asyncio.sleep(0)
            return Decision("give" if self.seat.seat else "keep")

    record = crew(["giver", "giver", "giver"], weights=[1.0, 2.0, 3.0], rounds=2)
    waiting = {"giver": Waiting}

    def mixed(spec: str, seat: Seat) -> Agent:
        return waiting[spec](seat) if spec in waiting else make(spec, seat)

    credit = divide(record, make=mixed, most=2)
    assert credit.cost.model_calls > 0
    assert fsum(shares(credit)) == credit.result


def test_resampled_worlds_keep_the_sides_and_what_the_seat_knows() -> None:
    line = read_line(played(["scripted"] * 7, game="avalon", make=make_agent))
    state, seat = line.states[0], line.members("good")[0]
    worlds = [resampled(state, seat, seed=derive_seed(1, n)) for n in range(12)]
    assert {world.teams() for world in worlds} == {state.teams()}
    assert len({world.roles() for world in worlds}) > 1
    own = [event for event in state.history if event.visible_to(seat)]
    assert all([event for event in world.history if event.visible_to(seat)] == own for world in worlds)


def test_nothing_that_was_decided_is_replaced_where_a_seat_decides_nothing() -> None:
    line = read_line(crew(["giver", "giver"], weights=[1.0, 1.0]))
    assert leaves(line, {0: Span(1)}) is None
    assert leaves(line, {0: Span(0, 1)}) == 0


def test_who_cannot_be_rebuilt_is_refused_or_stood_in_for() -> None:
    record = played(["random"] * 5, game="avalon", make=make_agent)
    seats = list(record.header.seats)
    seats[3] = replace(seats[3], name="ann", spec="human", agent="")
    other = Record(replace(record.header, seats=tuple(seats)), record.entries, record.bodies, record.footer)
    team = read_line(record).outcome.teams[0]
    with pytest.raises(NotRebuilt, match=r"seat 3: ann \(human\) cannot be rebuilt"):
        divide(other, make=None, reference="random", team=team)
    credit = divide(other, make=None, reference="random", team=team, stand_in="scripted", most=1, steps=False)
    assert credit.notes == ("seat 3: scripted plays on for ann (human)",)
    seats[3] = replace(seats[3], spec="policy:x", policy="tiny, adapter x@3")
    modelled = Record(
        replace(record.header, seats=tuple(seats)), record.entries, record.bodies, record.footer
    )
    with pytest.raises(NotRebuilt, match="its language model does not run here"):
        divide(modelled, make=None, reference="random", team=team)


def test_another_version_of_a_player_is_told() -> None:
    record = played(["random"] * 2, game="kuhn", make=make_agent)
    seats = tuple(replace(seat, agent="RandomBot 0") for seat in record.header.seats)
    old = Record(replace(record.header, seats=seats), record.entries, record.bodies, record.footer)
    credit = divide(old, make=None, reference="random", team="first", most=1)
    assert credit.notes[0] == "seat 0: recorded was RandomBot 0, RandomBot 1 plays on"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden": "shown"}, "credit hidden: got 'shown', allowed are fixed, resampled"),
        ({"play_on": "me"}, "credit play_on: got 'me', allowed are agent, reference"),
        ({"error": float("nan")}, "credit error: got nan"),
        ({"most": 0}, "credit most: got 0, allowed are whole numbers from 1 to 100000"),
        ({"coalitions": 17}, "credit coalitions: got 17, allowed are whole numbers from 1 to 16"),
        ({"step_replicates": 0}, "credit step_replicates: got 0"),
        ({"depth": 1}, "credit setting: got 'depth', allowed are coalitions, error"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings: dict[str, Any], said: str) -> None:
    for method in (Shapley, LeaveOneOut):
        with pytest.raises(BadCredit) as error:
            method(**settings)
        assert str(error.value).startswith(said)
        assert "\n" not in str(error.value)


def test_bad_input_is_refused_in_one_line() -> None:
    record = crew(["giver", "giver"], weights=[1.0, 1.0])
    with pytest.raises(BadCredit, match="team: got 'red', this match has crew"):
        divide(record, team="red")
    with pytest.raises(BadCredit, match="credit method: got 'guess', allowed are equal"):
        make_method("guess")
    with pytest.raises(BadCredit, match="credit method equal: "):
        make_method("equal", reference="random")
    with pytest.raises(RecordNotCredited, match="cut short"):
        divide(Record(record.header, record.entries[:-1], record.bodies[:-1], None, Damage(1, "ends", True)))
    with pytest.raises(RecordNotCredited, match="made under works rules 0, installed are rules 1"):
        divide(Record(replace(record.header, rules="0"), record.entries, record.bodies, record.footer))
    with pytest.raises(RecordNotCredited, match="game: got 'chess'"):
        divide(Record(replace(record.header, game="chess"), record.entries, record.bodies, record.footer))
    with pytest.raises(RecordDamaged):
        divide(Record(record.header, record.entries, [*record.bodies[:-1], b"x"], record.footer))
    kuhn = played(["random"] * 2, game="kuhn", make=make_agent)
    with pytest.raises(BadCredit, match="reference: player planner: planner plays forge, not kuhn"):
        divide(kuhn, make=None, team="first", reference="planner")
