from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from agents.credit.label_rules import RulesLabeller, attempt_labels, knows
from agents.credit.line import read_line
from agents.errors import BadCredit, BadLabels, RecordNotCredited
from games.avalon.rules import EVIL
from games.kuhn import CARDS
from games.tasks.cases import seed_case
from games.tasks.forge_setup import pool_task
from replays.record import Record
from tests.agents.credit.labelling import labels, play, said
from tests.replays.recording import encode, entries, header, read

RULES = RulesLabeller()


def kuhn_record(moves: list[str], cards: tuple[str, str]) -> Record:
    """Return a hand of these moves, of the first seed that deals these cards."""
    for seed in range(100):
        line = iter(moves)
        record = play("kuhn", lambda *_, line=line: next(line), seats=2, seed=seed)  # type: ignore[misc]
        dealt = read_line(record).final.cards  # type: ignore[attr-defined]
        if (CARDS[dealt[0]], CARDS[dealt[1]]) == cards:
            return record
    raise AssertionError("no seed deals them")


@pytest.mark.parametrize(
    ("moves", "cards", "first", "second"),
    [
        (["bet", "call"], ("queen", "king"), {}, {1: (1, "called with the king")}),
        (["bet", "fold"], ("queen", "king"), {}, {1: (-1, "folded the king")}),
        (["bet", "call"], ("queen", "jack"), {}, {1: (-1, "called with the jack")}),
        (["bet", "fold"], ("queen", "jack"), {}, {1: (1, "folded the jack")}),
        (["check", "check"], ("queen", "king"), {}, {1: (-1, "checked the king last")}),
        (["check", "bet", "call"], ("king", "queen"), {2: (1, "called with the king")}, {}),
        (["check", "bet", "fold"], ("queen", "king"), {}, {1: (1, "bet the king last")}),
    ],
)
def test_kuhn_knows_what_dominates(
    moves: list[str], cards: tuple[str, str], first: dict[int, Any], second: dict[int, Any]
) -> None:
    found = labels(RULES, kuhn_record(moves, cards))
    assert (said(found[0]), said(found[1])) == (first, second)


def evil_seats(state: Any) -> list[int]:
    return [seat for seat, side in enumerate(state.side_of) if side == EVIL]


def team_of(state: Any, space: Any, *, evil: int) -> tuple[str, ...]:
    bad = evil_seats(state)
    good = [seat for seat in range(state.seats) if seat not in bad]
    return tuple(map(str, sorted([*bad[:evil], *good[: space.size - evil]])))


def test_avalon_is_sided() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        match state.phase:
            case "propose":
                return team_of(state, space, evil=1)
            case "vote":
                return "approve"
            case "quest":
                return "fail" if seat in evil_seats(state) and len(space.options) > 1 else "success"
        return None

    record = play("avalon", answer, seats=5)
    line = read_line(record)
    found = labels(RULES, record)
    words = Counter(
        (line.outcome.teams[seat], *what) for seat in found for what in said(found[seat]).values()
    )
    assert words["good", -1, "approved a team with evil"] == 3 * 3
    assert words["evil", 1, "approved a team that evil can fail"] == 2 * 3
    assert words["evil", 1, "failed the quest"] == 3
    proposals = (
        words["good", -1, "proposed a team with evil"]
        + words["evil", 1, "proposed a team that evil can fail"]
    )
    assert proposals == 3
    assert sum(words.values()) == 9 + 6 + 3 + 3


def test_avalon_clean_teams_and_the_assassination() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        match state.phase:
            case "propose":
                return team_of(state, space, evil=0)
            case "vote":
                return "approve" if seat not in evil_seats(state) else "reject"
            case "assassinate":
                return str(state.role_of.index("merlin"))
        return None

    record = play("avalon", answer, seats=5)
    found = labels(RULES, record)
    words = Counter(what for seat in found for what in said(found[seat]).values())
    assert words[1, "approved a clean team"] == 3 * 3
    assert words[1, "rejected a team that evil cannot fail"] == 2 * 3
    assert words[1, "named Merlin"] == 1
    assert not any(value < 0 and why.startswith("approved") for value, why in words)


def test_avalon_the_fifth_proposal() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        if state.phase == "propose":
            return team_of(state, space, evil=1)
        return "reject" if state.phase == "vote" else None

    record = play("avalon", answer, seats=5)
    line = read_line(record)
    found = labels(RULES, record)
    last = len(line.final.plies) - 1
    for seat, labelled in found.items():
        good = line.outcome.teams[seat] == "good"
        assert said(labelled)[last] == (-1 if good else 1, "rejected the fifth proposal")
        earlier = {
            what for ply, what in said(labelled).items() if ply < last and what[1].startswith("rejected")
        }
        assert earlier == {
            (1, "rejected a team with evil") if good else (-1, "rejected a team that evil can fail")
        }


def test_avalon_a_fail_too_few_and_a_success_too_many() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        match state.phase:
            case "propose":
                return team_of(state, space, evil=1)
            case "vote":
                return "approve"
            case "quest" if state.quest == 4:
                return "fail" if len(space.options) > 1 else "success"
            case "quest":
                fails = state.quest == 1 and len(space.options) > 1
                return "fail" if fails else "success"
        return None

    # Of seven seats the fourth quest fails with two fails only: a single one is seen and wins nothing.
    found = labels(RULES, play("avalon", answer, seats=7, seed=2))
    words = Counter(what for seat in found for what in said(found[seat]).values())
    assert words[-1, "failed too little and was seen"] == 1
    assert words[1, "failed the quest"] == 1

    def meek(state: Any, seat: int, space: Any) -> Any:
        return "success" if state.phase == "quest" else answer(state, seat, space)

    found = labels(RULES, play("avalon", meek, seats=5, seed=2))
    words = Counter(what for seat in found for what in said(found[seat]).values())
    assert words[-1, "let good win its third quest"] == 1


def test_werewolf_votes_are_sided() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        if space.label != "vote":
            return None
        wolf = str(
            next(at for at in range(state.seats) if state.team_of[at] == "wolves" and state.alive >> at & 1)
        )
        return wolf if space.contains(wolf) else "abstain"

    record = play("werewolf", answer, seats=7)
    line = read_line(record)
    found = labels(RULES, record)
    for seat, labelled in found.items():
        votes = [what for what in said(labelled).values() if what[1] == "voted for a wolf"]
        assert all(value == (1 if line.outcome.teams[seat] == "village" else -1) for value, _ in votes)
    assert sum(what[1] == "voted for a wolf" for one in found.values() for what in said(one).values()) >= 6


def test_werewolf_the_nights() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        role_at = state.role_of.index
        match space.label:
            case "wolf_target":
                doctor = str(role_at("doctor"))
                return doctor if space.contains(doctor) else space.options[0]
            case "see":
                wolf = str(role_at("werewolf"))
                return wolf if space.contains(wolf) else None
            case "protect":
                return str(seat)
        return None

    options = {"doctor_repeat": True, "max_days": 3}
    record = play("werewolf", answer, seats=7, options=options)
    line = read_line(record)
    found = labels(RULES, record)
    at = line.outcome.roles.index
    seer = list(said(found[at("seer")]).values())
    assert seer[0] == (1, "found a wolf") and seer[1:] == [(-1, "looked at a seat again")] * len(seer[1:])
    assert set(said(found[at("doctor")]).values()) == {(1, "guarded the attacked")}
    assert (1, "went for the doctor") in said(found[at("werewolf")]).values()


@pytest.mark.parametrize("name", [0, 3, 7])
def test_steps_of_a_shortest_plan_are_good(name: int) -> None:
    course = pool_task(name)
    assert attempt_labels(course.spec, course.plan) == [1] * len(course.plan)


def test_steps_that_lead_nowhere_are_not() -> None:
    course = pool_task(0)
    first = course.plan[0]
    slack = course.spec.budget - course.optimal
    assert slack >= 2
    assert attempt_labels(course.spec, ["wait", *course.plan])[:2] == [-1, 1]
    late = attempt_labels(course.spec, ["wait"] * (slack + 2) + [first])
    assert late[: slack + 1] == [-1] * (slack + 1) and late[slack + 1 :] == [0, 0]


def test_an_attempt_at_a_task_that_cannot_be_solved() -> None:
    spec = replace(seed_case(), budget=1)
    with pytest.raises(BadLabels, match="cannot be solved within its budget"):
        attempt_labels(spec, ["wait"])


def test_forge_setters_and_solvers() -> None:
    seen: dict[tuple[int, int], list[str]] = {}

    def answer(state: Any, seat: int, space: Any) -> Any:
        if space.label != "step":
            return None
        run = state.runs[seat]
        course = state.tasks[state.queues[seat][run.place]]
        # The first attempt of each pair of seats follows the plan, the second waits.
        if run.place % 2 == 0:
            return course.plan[len(run.trail)]
        return "wait"

    record = play("forge", answer, seats=3, options={"rounds": 1, "attempts": 4})
    found = labels(RULES, record)
    line = read_line(record)
    for seat, labelled in found.items():
        by_ply = {step.ply: step for step in labelled.steps}
        assert [step.ply for step in labelled.steps] == [taken.ply for taken in line.taken[seat]]
        setting = by_ply[0]
        # Half of the attempts solved each task, so each is worth all that its novelty leaves of it.
        assert (setting.value, setting.why) == (1, "its task earned 1.00") or setting.value >= 0
        goods = sum(step.value > 0 for step in labelled.steps if step.ply)
        assert goods >= 2 and any(step.why == "waited" for step in labelled.steps)
    assert not seen


def test_a_relay_labels_who_directs_and_who_runs() -> None:
    def answer(state: Any, seat: int, space: Any) -> Any:
        if space.label != "step":
            return None
        team = state.pair[seat % 2]
        return state.course.plan[len(team.trail)] if seat % 2 == 0 else "wait"

    record = play("forge", answer, seats=4, options={"mode": "relay", "rounds": 1, "leash": 5})
    line = read_line(record)
    found = labels(RULES, record)
    team = line.states[0].pair  # type: ignore[attr-defined]
    red, blue = team[0], team[1]
    assert set(said(found[red.setter]).values()) == {(1, "ended nearer the goal")}
    assert set(said(found[blue.setter]).values()) == {(-1, "ended no nearer the goal")}
    assert all(value == 1 for value, _ in said(found[red.runners[0]]).values())
    assert (-1, "waited") in said(found[blue.runners[0]]).values()


@pytest.mark.parametrize(
    ("game", "seats", "options"),
    [
        ("kuhn", 2, {}),
        ("avalon", 5, {}),
        ("avalon", 8, {"lady": True}),
        ("werewolf", 12, {"ties": "runoff"}),
        ("werewolf", 8, {"reveal": False}),
        ("forge", 3, {"rounds": 1, "attempts": 2}),
        ("forge", 4, {"mode": "relay", "rounds": 2}),
    ],
)
@pytest.mark.parametrize("messy", [False, True])
def test_every_decision_of_any_match_is_labelled_once(
    game: str, seats: int, options: dict[str, Any], messy: bool
) -> None:
    for seed in range(3):
        head = replace(header(game, seats=seats, seed=seed), options=options)
        record = read(encode(head, *entries(head, messy=messy)))
        line = read_line(record)
        found = labels(RULES, record)
        assert list(found) == list(range(seats))
        for seat, labelled in found.items():
            assert [step.ply for step in labelled.steps] == [taken.ply for taken in line.taken[seat]]
            forced = {taken.ply for taken in line.taken[seat] if taken.forced}
            assert not any(step.value for step in labelled.steps if step.ply in forced)
            assert not labelled.model_calls


def test_what_was_forced_is_neutral() -> None:
    record = play("avalon", lambda *_: None, seats=5, wrong=range(5))
    assert not any(said(one) for one in labels(RULES, record).values())


def test_some_seats_alone() -> None:
    record = play("avalon", lambda *_: None, seats=5)
    assert list(labels(RULES, record, [3, 1])) == [1, 3]
    with pytest.raises(BadCredit, match="seat: got 5, this match has seats 0 to 4"):
        labels(RULES, record, [5])


def test_what_gives_no_labels() -> None:
    record = play("kuhn", lambda *_: None, seats=2)
    with pytest.raises(RecordNotCredited, match="rules"):
        labels(RULES, replace(record, header=replace(record.header, rules="0")))
    cut = replace(record, footer=None)
    with pytest.raises(RecordNotCredited):
        labels(RULES, cut)
    assert knows("kuhn") and not knows("chess")


def test_a_game_without_rules_of_what_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.credit import label_rules

    monkeypatch.delitem(label_rules._JUDGES, "kuhn")
    with pytest.raises(BadLabels, match="labels rules: nothing is known of good decisions in kuhn"):
        labels(RULES, play("kuhn", lambda *_: None, seats=2))
