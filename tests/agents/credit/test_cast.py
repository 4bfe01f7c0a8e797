"""Who plays on from a record: the recorded players, the reference, stand-ins, and one line for who cannot be."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.base import Agent, Decision, Seat
from agents.bots.forge import PlannerBot
from agents.bots.kuhn import EquilibriumBot
from agents.bots.random import RandomBot
from agents.credit.cast import make_cast
from agents.credit.line import Line, read_line
from agents.credit.replay import Cast, RandomReference
from agents.errors import BadCredit, NotRebuilt, PlayerCannotPlay, UnknownAdapter
from agents.players import make_agent
from games.referee import Turn
from replays.record import SeatInfo
from tests.agents.credit.works import Coin, Fixed, Keeper, make, played

KUHN = read_line(played(["random", "scripted"], game="kuhn", make=make_agent))


def cast(line: Line = KUHN, **settings: Any) -> Cast:
    return asyncio.run(make_cast(line, **settings))


def seated(line: Line, *infos: SeatInfo | None) -> Line:
    """Return the line with other players named in its header; None leaves a seat as it is."""
    seats = tuple(other or own for own, other in zip(line.header.seats, infos, strict=True))
    return replace(line, header=replace(line.header, seats=seats))


def place(line: Line, seat: int = 0) -> Seat:
    return Seat(line.game, line.seats, line.final.options, seat, 5)


class Model(Agent):
    """What a language model's seat is to a cast: a version, a policy, and no answer at once."""

    version = "7"

    def observe(self, events: Any) -> None:
        return

    async def act(self, turn: Turn) -> Decision:
        return Decision(turn.space.default)

    async def close(self) -> None:
        self.closed = True


class Running:
    """Engines that run: pins specs as the store would, and remembers what was made."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.pinned: list[str] = []
        self.made: list[tuple[str, str, str]] = []
        self.agents: list[Model] = []

    async def pin(self, spec: str) -> str:
        if self.fails:
            raise UnknownAdapter("there is no x")
        self.pinned.append(spec)
        return "base" if spec == "policy" else spec.partition(":")[2]

    def agent(self, spec: str, seat: Seat, *, adapter: str, match: str = "") -> Agent:
        made = Model(seat)
        made.policy = f"tiny, adapter {adapter}"
        self.made.append((spec, match, adapter))
        self.agents.append(made)
        return made


def test_bots_are_made_anew_at_the_seats_where_they_sat() -> None:
    found = cast()
    assert [type(make(place(KUHN, seat))) for seat, make in enumerate(found.own)] == [
        RandomBot,
        EquilibriumBot,
    ]
    one, other = (found.own[0](place(KUHN)) for _ in range(2))
    assert one is not other and one.seat == place(KUHN)
    assert found.instant and found.notes == ()


def test_the_reference_is_random_unless_another_is_named() -> None:
    assert cast().reference is RandomReference
    assert type(cast(reference="scripted").reference(place(KUHN))) is EquilibriumBot


def test_a_bot_comes_back_with_its_skill() -> None:
    options = {"mode": "relay", "rounds": 1}
    line = read_line(played(["planner:0.6"] * 4, game="forge", options=options, make=make_agent))
    found = cast(line)
    agent = found.own[2](place(line, 2))
    assert isinstance(agent, PlannerBot) and agent.skill == 0.6 and found.notes == ()


@pytest.mark.parametrize("what", ["reference", "stand_in"])
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nobody", "player: got 'nobody', allowed are random"),
        ("human", "player 'human': a person plays with"),
        ("planner", "player planner: planner plays forge, not kuhn"),
        ("policy", "its language model does not run here"),
        ("openai:m@http://x", "its language model does not run here"),
        ("policy:@", "player: got 'policy:@'"),
    ],
)
def test_who_is_asked_for_and_cannot_play_is_refused_in_one_line(what: str, spec: str, said: str) -> None:
    asked: dict[str, Any] = {what: spec}
    with pytest.raises(BadCredit) as error:
        cast(**asked)
    assert str(error.value).startswith(f"{what.replace('_', '-')}: {said}")
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("works")
def test_other_makers_know_their_own_specs_and_say_what_they_do_not_know() -> None:
    line = read_line(played(["giver", "coin"], options={"weights": [1.0, 1.0]}))
    found = cast(line, make=make, reference="keeper")
    assert [type(own(place(line, seat))) for seat, own in enumerate(found.own)] == [Fixed, Coin]
    assert type(found.reference(place(line))) is Keeper

    def choosy(spec: str, seat: Seat) -> Agent:
        if spec == "keeper":
            raise PlayerCannotPlay("keepers are gone")
        return make(spec, seat)

    with pytest.raises(BadCredit, match=r"^reference: keepers are gone$"):
        cast(line, make=choosy, reference="keeper")


@pytest.mark.parametrize("settings", [{"reference": "slow"}, {"stand_in": "slow"}, {}])
def test_one_who_takes_time_makes_the_cast_take_time(settings: dict[str, Any]) -> None:
    def some(spec: str, seat: Seat) -> Agent:
        return Model(seat) if spec == "slow" else make_agent(spec, seat)

    line = KUHN if settings else seated(KUHN, SeatInfo("s", "slow"), None)
    assert not cast(line, make=some, **settings).instant
    assert cast(KUHN, make=some).instant


def test_a_stand_in_plays_on_for_whoever_is_gone_and_for_nobody_else() -> None:
    line = seated(KUHN, SeatInfo("ann", "human"), None)
    with pytest.raises(NotRebuilt) as error:
        cast(line)
    assert str(error.value).startswith("seat 0: ann (human) cannot be rebuilt to play on: player 'human': ")
    assert str(error.value).endswith("; name a player that stands in for it")
    found = cast(line, stand_in="random")
    assert [type(own(place(line, seat))) for seat, own in enumerate(found.own)] == [RandomBot, EquilibriumBot]
    assert found.notes == ("seat 0: random plays on for ann (human)",)
    assert cast(stand_in="random").notes == (), "nobody is gone"


def test_long_names_are_cut_in_what_is_said() -> None:
    line = seated(KUHN, None, SeatInfo("n" * 100, "s" * 100))
    with pytest.raises(NotRebuilt) as error:
        cast(line)
    assert f"seat 1: {'n' * 40} ({'s' * 60}) cannot" in str(error.value)


def test_what_is_not_recorded_of_a_player_is_not_compared() -> None:
    assert cast(seated(KUHN, SeatInfo("p", "random"), None)).notes == ()
    line = seated(KUHN, SeatInfo("p", "random", "RandomBot 1"), SeatInfo("q", "scripted", "Old 3"))
    assert cast(line).notes == ("seat 1: recorded was Old 3, EquilibriumBot 1 plays on",)


@pytest.mark.parametrize(
    ("info", "pinned", "noted"),
    [
        (SeatInfo("p", "policy:x", "Model 7", "tiny, adapter x@3"), "policy:x@3", False),
        (SeatInfo("p", "policy:x", "Model 7", "a, adapter b, adapter x@3"), "policy:x@3", True),
        (SeatInfo("p", "policy", "Model 7", "tiny, adapter base"), "policy", False),
        (SeatInfo("p", "policy:x", "Model 7", "tiny, adapter base"), "policy", False),
        (SeatInfo("p", "policy:x@1"), "policy:x@1", False),
        (
            SeatInfo("p", "openai:m@http://h", "Model 7", "m at h"),
            "openai:m@http://h",
            True,
        ),
    ],
)
def test_a_model_is_pinned_in_the_version_that_was_recorded(info: SeatInfo, pinned: str, noted: bool) -> None:
    running = Running()
    found = cast(seated(KUHN, info, None), policies=running)
    assert running.pinned == [pinned] and not found.instant
    assert [agent.closed for agent in running.agents] == [True], "the probe is let go"
    found.own[0](place(KUHN))
    spec, match, adapter = running.made[-1]
    assert (spec, match) == (pinned, "credit") and adapter == running.made[0][2]
    assert any(note.startswith("seat 0: recorded was ") for note in found.notes) is noted


def test_models_can_be_reference_and_stand_in() -> None:
    running = Running()
    line = seated(KUHN, SeatInfo("ann", "human"), None)
    found = cast(line, reference="policy:a@1", stand_in="policy:b@2", policies=running)
    for make_one, adapter in ((found.reference, "a@1"), (found.own[0], "b@2")):
        assert make_one(place(line)).policy == f"tiny, adapter {adapter}"
    assert not found.instant


def test_a_model_that_fails_is_said_as_such_whoever_stands_in() -> None:
    line = seated(KUHN, SeatInfo("p", "policy:x"), None)
    with pytest.raises(UnknownAdapter, match="there is no x"):
        cast(line, stand_in="random", policies=Running(fails=True))


def test_every_seat_has_a_maker_of_its_own() -> None:
    line = read_line(played(["random"] * 5, game="avalon", make=make_agent))
    found = cast(line)
    makers: list[Callable[[Seat], Agent]] = list(found.own)
    assert len(makers) == line.seats == 5
    assert all(own(place(line, seat)).seat.seat == seat for seat, own in enumerate(makers))
