"""Other matches that look the same from one seat.

A role assignment that fits what the seat was told outright is drawn uniformly; the match is then played again
under it, ply by ply. What the seat saw is played as it was; hidden night actions are drawn among those that
lead to the deaths that everybody saw. A world that shows the seat anything else is thrown away and drawn
again, so an assignment under which fewer draws fit comes out less often; a posterior it is not.
"""

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from games.base import Event
from games.rng import Chance, RecordedChance
from games.spaces import Action, Choice
from games.werewolf.setup import (
    HEAL,
    HUNTER,
    NIGHT,
    NONE,
    POISON,
    POTION,
    SHOOT,
    WEREWOLF,
    WITCH,
    WOLF_TALK,
    WOLVES,
    deck,
    role_mix,
)
from games.werewolf.view import WerewolfView

if TYPE_CHECKING:
    from games.werewolf.state import WerewolfState

ROLE_ATTEMPTS = 60
"""Role assignments tried before the true one is kept and only hidden actions are drawn anew."""
ACTION_ATTEMPTS = 20


def resample(state: "WerewolfState", seat: int, rng: random.Random) -> "WerewolfState":
    """Return another state with the same events, view and turn for `seat`, and the same number of plies."""
    told = _Told(state, seat)
    for attempt in range(ROLE_ATTEMPTS + ACTION_ATTEMPTS):
        roles = told.draw_roles(rng) if attempt < ROLE_ATTEMPTS else state.role_of
        world = told.play(roles, rng)
        if world is not None:
            return world
    return state._redealt(state.draws(), state.plies, rng)


class _Ply(NamedTuple):
    """One ply as it was: its phase and day, the actions, what the seat saw of it, and what was drawn."""

    phase: str
    day: int
    actions: Mapping[int, Action]
    seen: list[Event]
    draws: list[Any]


class _Night(NamedTuple):
    """Hidden choices of one night: the wolves' target, the doctor's seat (None: no doctor), the potion."""

    target: int
    protected: int | None
    potion: str


class _Told:
    """What one seat knows of a match, and worlds drawn to fit it."""

    def __init__(self, state: "WerewolfState", seat: int) -> None:
        self.state = state
        self.seat = seat
        self.view: WerewolfView = state.view(seat)
        shadow: WerewolfState = state.game.start(
            RecordedChance(state.draws()), seats=state.seats, options=state.options
        )
        self.opening = [event for event in shadow.history if event.visible_to(seat)]
        self.plies: list[_Ply] = []
        for actions in state.plies:
            phase, day = shadow.phase, shadow.day
            events = shadow.apply(actions)
            seen = [event for event in events if event.visible_to(seat)]
            draws = [event.data["value"] for event in events if event.kind == "chance"]
            self.plies.append(_Ply(phase, day, actions, seen, draws))
        self.phases = [*(ply.phase for ply in self.plies), state.phase]
        self.dead: dict[int, set[int]] = {}
        for event in state.history:
            if event.kind == "dawn":
                self.dead[event.data["day"]] = {seat for seat, _ in event.data["dead"]}
        self.shot_at_dawn = {
            ply.day
            for ply, after in zip(self.plies, self.phases[1:], strict=True)
            if ply.phase in (NIGHT, POTION) and after == SHOOT
        }
        self.attacked = {deed.day: deed.at for deed in self.view.attacks}
        self.known, self.not_wolf = self._facts()

    def _facts(self) -> tuple[dict[int, str], set[int]]:
        view = self.view
        known = dict(view.roles)
        for deed in view.shots:
            known[deed.seat] = HUNTER
        if self.state.phase == SHOOT:
            known[self.state.hunter] = HUNTER
        not_wolf = {sight.at for sight in view.sights if not sight.wolf}
        known |= {sight.at: WEREWOLF for sight in view.sights if sight.wolf}
        not_wolf |= {at for at in self.attacked.values() if at is not None}
        if view.role == WEREWOLF:
            not_wolf |= set(range(view.seats)) - set(view.pack)
        if WITCH not in view.mix:
            not_wolf |= {death.seat for death in view.deaths if death.cause == "night"}
        return known, not_wolf

    def draw_roles(self, rng: random.Random) -> tuple[str, ...]:
        """Return a role assignment, uniform among those that fit what the seat was told outright."""
        left = role_mix(self.state.seats, self.state.options)
        for role in self.known.values():
            left[role] -= 1
        free = [seat for seat in range(self.state.seats) if seat not in self.known]
        wolves = rng.sample([seat for seat in free if seat not in self.not_wolf], left.pop(WEREWOLF))
        rest = [seat for seat in free if seat not in wolves]
        cards = [role for role, count in left.items() for _ in range(count)]
        rng.shuffle(cards)
        roles = self.known | dict.fromkeys(wolves, WEREWOLF) | dict(zip(rest, cards, strict=True))
        return tuple(roles[seat] for seat in range(self.state.seats))

    def play(self, roles: Sequence[str], rng: random.Random) -> "WerewolfState | None":
        """Return a world under `roles` that shows the seat what it saw, or None where this try led elsewhere."""
        state = self.state
        order = _order(roles, deck(state.seats, state.options))
        world: WerewolfState = state.game.start(
            RecordedChance([order]), seats=state.seats, options=state.options
        )
        if [event for event in world.history if event.visible_to(self.seat)] != self.opening:
            return None
        night = _Night(-1, None, NONE)
        for ply in self.plies:
            if world.phase != ply.phase:
                return None
            hunts = self.seat in world.open and world.team_of[self.seat] == WOLVES
            world.chance = Chance(rng.getrandbits(63))
            if ply.phase == NIGHT:
                plan = self._plan(world, ply, rng)
                if plan is None:
                    return None
                night = plan
                actions = self._night_actions(world, ply, night, rng)
                if hunts:
                    world.chance = RecordedChance(ply.draws)
            elif ply.phase == POTION:
                actions = {world.witch: night.potion}
            elif ply.phase == WOLF_TALK and not hunts:
                actions = {seat: space.sample(rng) for seat, space in world.open.items()}
            else:
                actions = dict(ply.actions)
            if actions.keys() != world.open.keys():
                return None
            if [event for event in world.apply(actions) if event.visible_to(self.seat)] != ply.seen:
                return None
        if world.phase != state.phase or world.open.get(self.seat) != state.open.get(self.seat):
            return None
        world.chance = Chance(rng.getrandbits(63))
        return world

    def _plan(self, world: "WerewolfState", ply: _Ply, rng: random.Random) -> _Night | None:
        """Return hidden choices, uniform among those that lead to the night's known deaths; None if none do."""
        pack = [seat for seat in world.open if world.wolves >> seat & 1]
        if self.seat in pack:
            targets = [next(hunt.at for hunt in self.view.hunts if hunt.day == ply.day)]
        elif self.seat == world.witch and ply.day in self.attacked:
            targets = [cast("int", self.attacked[ply.day])]
        else:
            targets = _seats(world.open[pack[0]])
        guards: list[int | None] = [None]
        if world.doctor in world.open:
            own = self.seat == world.doctor
            guards = [int(str(ply.actions[self.seat]))] if own else [*_seats(world.open[world.doctor])]
        dead = self.dead.get(ply.day)
        potions = [NONE]
        if world._lives(world.witch):
            potions = self._potions(world, ply.day, dead)
        fits = [
            _Night(target, guard, potion)
            for target in targets
            for potion in potions
            for guard in guards
            if dead is None or self._leads_to(world, dead, _Night(target, guard, potion), ply.day)
        ]
        return rng.choice(fits) if fits else None

    def _potions(self, world: "WerewolfState", day: int, dead: set[int] | None) -> list[str]:
        if self.seat == world.witch:
            done = [deed for deed in self.view.potions if deed.day == day]
            return [f"{POISON} {deed.at}" if deed.what == POISON else deed.what for deed in done] or [NONE]
        poisons = [f"{POISON} {seat}" for seat in sorted(dead or ()) if seat != world.witch]
        return [NONE, *([HEAL] if world.heal else ()), *(poisons if world.poison else ())]

    def _leads_to(self, world: "WerewolfState", dead: set[int], night: _Night, day: int) -> bool:
        poisoned = int(night.potion.partition(" ")[2] or -1)
        killed = night.target != night.protected and night.potion != HEAL
        if dead != {seat for seat in ((night.target if killed else -1), poisoned) if seat >= 0}:
            return False
        wolves_left = any(
            world.wolves >> s & 1 for s in range(world.seats) if s not in dead and world._lives(s)
        )
        if world.hunter in dead and wolves_left:
            return (poisoned != world.hunter) == (day in self.shot_at_dawn)
        return True

    def _night_actions(
        self, world: "WerewolfState", ply: _Ply, night: _Night, rng: random.Random
    ) -> dict[int, Action]:
        actions: dict[int, Action] = {}
        for seat, space in world.open.items():
            if seat == world.doctor:
                actions[seat] = str(night.protected)
            elif seat == world.seer:
                actions[seat] = ply.actions[seat] if seat == self.seat else space.sample(rng)
        pack = [seat for seat in world.open if world.wolves >> seat & 1]
        if self.seat in pack:
            return actions | {seat: ply.actions[seat] for seat in pack}
        options = _seats(world.open[pack[0]])
        votes = [night.target if rng.random() < 0.7 else rng.choice(options) for _ in pack]
        others = max(votes.count(option) if option != night.target else 0 for option in options)
        if votes.count(night.target) <= others:
            votes = [night.target] * len(pack)
        return actions | {seat: str(vote) for seat, vote in zip(pack, votes, strict=True)}


def _seats(space: Any) -> list[int]:
    options: Choice = space
    return [int(option) for option in options.options]


def _order(roles: Sequence[str], cards: Sequence[str]) -> list[int]:
    """Return the shuffle that deals `roles` from `cards`."""
    left: dict[str, list[int]] = {}
    for number, card in enumerate(cards):
        left.setdefault(card, []).append(number)
    return [left[role].pop() for role in roles]
