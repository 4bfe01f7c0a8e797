"""What every world must keep, tested on random play in random layouts; a world without a strategy here fails."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.goals import PREDICATES, Goal, check_name
from games.tasks.spec import TaskSpec
from games.tasks.world import FAULTS, WAIT, World
from games.tasks.worlds import WORLDS, world_type
from tests.games.tasks.worlds_for_tests import goal_data, grids, parsed, text_worlds

STRATEGIES: dict[str, st.SearchStrategy[Any]] = {"grid": grids(), "text": text_worlds()}
GAINED_BY = {"has": "take", "opened": "open", "delivered": "drop", "at": "move"}

worlds = st.one_of([STRATEGIES[name] for name in sorted(STRATEGIES)])
seeds = st.integers(0, 2**32)


def test_every_world_is_tested_here() -> None:
    assert STRATEGIES.keys() == WORLDS.keys()
    assert all(world_type(name).name == name for name in WORLDS)


@pytest.mark.parametrize("name", [None, 3, [], "", "GRID"])
def test_an_unknown_world_is_refused_with_those_known(name: Any) -> None:
    with pytest.raises(BadTask, match=r"^task world: got .*, allowed are grid"):
        world_type(name)


@given(worlds, seeds)
def test_states_actions_and_facts_keep_the_contract(world: World[Any], seed: int) -> None:
    rng, state = random.Random(seed), world.initial()
    assert world.lost(state) is None
    known = facts_known(world)
    for _ in range(60):
        legal = world.legal(state)
        facts = world.facts(state)
        assert facts <= known
        assert {state: True}[state]
        json.dumps(world.observe(state))
        json.dumps(world.observe(state, radius=2))
        assert world.render(state)
        if world.lost(state) is not None:
            assert legal == ()
            assert world.fault(state, WAIT) == "lost"
            assert world.step(state, WAIT) == state
            return
        assert WAIT in legal
        assert len(set(legal)) == len(legal)
        waited = world.step(state, WAIT)
        for action in ("", "solve the task", "Wait", "\ud800", *legal):
            fault = world.fault(state, action)
            assert (fault is None) == (action in legal)
            assert fault is None or fault in FAULTS
            if fault is not None:
                assert world.step(state, action) == waited
        action = rng.choice(legal)
        after = world.step(state, action)
        assert after == world.step(state, action)
        gained = [fact for fact in world.facts(after) if fact not in facts]
        kind = world.act_kind(action)
        assert kind in ("move", "take", "open", "drop", "wait")
        assert all(GAINED_BY[fact[0]] == kind for fact in gained)
        assert len(gained) <= 1
        state = after


def facts_known(world: World[Any]) -> set[tuple[str, ...]]:
    """Return every fact that the vocabulary allows a world to state."""
    known: set[tuple[str, ...]] = set()
    for head, places in world.vocabulary().items():
        assert len(places) == PREDICATES[head][1]
        rows: list[tuple[str, ...]] = [(head,)]
        for names in places:
            for name in names:
                assert check_name(name, what=head) == name
            rows = [(*row, name) for row in rows for name in names]
        known.update(rows)
    assert world.vocabulary()["visited"] == world.vocabulary()["at"]
    return {fact for fact in known if fact[0] != "visited"}


@given(worlds)
def test_a_layout_survives_json_and_its_canonical_form_is_fixed(world: World[Any]) -> None:
    data = world.to_data()
    again = type(world).parse(json.loads(json.dumps(data)))
    assert again.to_data() == data
    assert again.initial() == world.initial()


@given(
    worlds.flatmap(lambda world: st.tuples(st.just(world), goal_data(world.vocabulary()).map(parsed))), seeds
)
def test_what_is_useful_is_legal(pair: tuple[World[Any], Goal | None], seed: int) -> None:
    world, goal = pair
    if goal is None:
        return
    rng, state, useful = random.Random(seed), world.initial(), world.useful(goal)
    for _ in range(30):
        assert set(useful(state)) <= set(world.legal(state))
        if not world.legal(state):
            return
        if goal.is_timed() or world.hazards:
            assert WAIT in useful(state)
        state = world.step(state, rng.choice(world.legal(state)))
    assert TaskSpec.make(world, goal=goal, budget=9).make_world().to_data() == world.to_data()
