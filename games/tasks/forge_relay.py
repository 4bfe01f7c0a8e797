"""A relay in progress: two teams on one layout, in each a setter who sees it all and runners who see a little.

What a team's members do is the team's alone until both teams have ended the leg; the map is its setter's alone.
"""

import random
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, Self

from games.base import EVERYONE, Outcome, State
from games.errors import BadTask, ChanceNeeded
from games.rng import Chance
from games.spaces import Action, ActionSpace, Choice, Text
from games.tasks.forge_course import Course, Node
from games.tasks.forge_credit import Stretch, leg_losses
from games.tasks.forge_setup import (
    DIRECT,
    DONE,
    HINT,
    MAX_SUBTASKS,
    MAX_TASK_CHARS,
    POOL,
    RUN,
    SILENT,
    SMITH,
    SOLVED,
    TEAMS,
    VARIANTS,
    offer,
)
from games.tasks.forge_table import ended
from games.tasks.goals import BROKEN, OPEN, PREDICATES, Goal
from games.tasks.spec import parse_json

RED, BLUE = 0, 1
RESAMPLES = 8
GOAL_TEXT = Text(MAX_TASK_CHARS, DIRECT)


class Team(NamedTuple):
    """Where a team stands in its leg."""

    setter: int
    runners: tuple[int, ...]
    """In the order in which they take over."""
    stage: str
    node: Node
    trail: tuple[str, ...] = ()
    turn: int = 0
    """How many subtasks came before the one at hand."""
    goal: Goal | None = None
    progress: Any = None
    left: int = 0
    """Steps that the subtask still has."""
    origin: Node | None = None
    """Where the subtask at hand began."""
    stretches: tuple[Stretch, ...] = ()
    """The subtasks that are over."""
    end: str = ""

    @property
    def runner(self) -> int:
        """Whose turn to run it is."""
        return self.runners[self.turn % len(self.runners)]


def members(team: int, seats: int) -> tuple[int, ...]:
    """Return the seats of a team: the even ones are red, the odd ones blue."""
    return tuple(range(team, seats, 2))


def subtasks(course: Course, node: Node) -> dict[str, Goal]:
    """Return the conditions that may be named as a subtask at `node`, by their words; those that hold are left out."""
    return {words: goal for words, goal in _conditions(course).items() if _fact(goal) not in node.facts}


@lru_cache(maxsize=512)
def _conditions(course: Course) -> dict[str, Goal]:
    vocabulary = course.world.vocabulary()
    found: dict[str, Goal] = {}
    for head in ("has", "opened", "at", "delivered"):
        places = [sorted(names) for names in vocabulary.get(head, ())]
        if len(places) != PREDICATES[head][1] or not all(places):
            continue
        for names in product(*places):
            goal = Goal.parse({head: names[0] if len(names) == 1 else list(names)})
            found[f"{head} {' '.join(names)}"] = goal
    return dict(list(found.items())[:MAX_SUBTASKS])


def _fact(goal: Goal) -> tuple[str, ...]:
    (fact,) = goal.facts()
    return fact


class RelayState(State):
    """One relay."""

    __slots__ = ("_outcome", "_turns", "began", "course", "earned", "leg", "order", "pair")

    def _start(self) -> None:
        options = self.options
        self.leg = 0
        self.order = tuple(self._shuffle("layouts", POOL))
        self.earned = (0.0, 0.0)
        self.began = 0
        self._turns: Mapping[int, ActionSpace] = {}
        self._outcome: Outcome | None = None
        start = {
            "mode": options.mode,
            "seats": self.seats,
            "rounds": options.rounds,
            "radius": options.radius,
        }
        self._emit("start", {**start, "leash": options.leash, "hint_chars": options.hint_chars})
        self._open_leg()

    def turns(self) -> Mapping[int, ActionSpace]:
        return self._turns

    def outcome(self) -> Outcome | None:
        return self._outcome

    def teams(self) -> tuple[str, ...]:
        return tuple(TEAMS[seat % 2] for seat in range(self.seats))

    def roles(self) -> tuple[str, ...]:
        return (SMITH,) * self.seats

    def _open_leg(self) -> None:
        made = offer(self.order[self.leg % POOL], self._draw("variant", VARIANTS))
        names = tuple(made.edits)
        self.course: Course = made.edits[names[self._draw("edit", len(names))]]
        pair = []
        for team in (RED, BLUE):
            seats = members(team, self.seats)
            at = self.leg % len(seats)
            runners = (*seats[at + 1 :], *seats[:at])
            pair.append(Team(seats[at], runners, DIRECT, self.course.start))
        self.pair: tuple[Team, ...] = tuple(pair)
        self.leg += 1
        self.began = len(self.plies)
        told = [{"setter": team.setter, "runners": list(team.runners)} for team in pair]
        self._emit("leg", {"leg": self.leg, "teams": told, "budget": self.course.spec.budget})
        data = {"task": self.course.data, "hash": self.course.hash, "optimal": self.course.optimal}
        self._emit("map", data, tuple(team.setter for team in pair))
        self._ask()

    def _ask(self) -> None:
        """Say whose turn it is, in each team that has not ended."""
        turns: dict[int, ActionSpace] = {}
        for team in self.pair:
            if team.stage == DIRECT:
                turns[team.setter] = self._direct_space(team)
            elif team.stage == HINT:
                turns[team.setter] = _hint_text(self.options.hint_chars)
            elif team.stage == RUN:
                assert team.node.space is not None
                turns[team.runner] = team.node.space
        self._turns = turns

    def _direct_space(self, team: Team) -> ActionSpace:
        if self.options.setting == "json":
            return GOAL_TEXT
        return _choice((*subtasks(self.course, team.node), SILENT))

    def _apply(self, actions: Mapping[int, Action]) -> None:
        pair = list(self.pair)
        for number, team in enumerate(pair):
            seat = team.runner if team.stage == RUN else team.setter
            if team.stage == DONE:
                continue
            action = str(actions[seat])
            if team.stage == DIRECT:
                pair[number] = self._direct(number, team, action)
            elif team.stage == HINT:
                self._emit("hint", {"seat": seat, "text": action}, members(number, self.seats))
                pair[number] = self._begin_run(team)
            else:
                pair[number] = self._run(number, team, action)
        self.pair = tuple(pair)
        if all(team.stage == DONE for team in pair):
            self._close_leg()
        else:
            self._ask()

    def _direct(self, number: int, team: Team, action: str) -> Team:
        goal, reason = self._read_goal(team, action)
        told: dict[str, Any] = {"seat": team.setter, "runner": team.runner}
        told["goal"] = None if goal is None else goal.to_data()
        if reason:
            told["reason"] = reason
        self._emit("direct", told, members(number, self.seats))
        progress = None if goal is None else goal.start(team.node.facts)
        team = team._replace(goal=goal, progress=progress, left=self.options.leash, origin=team.node)
        return team._replace(stage=HINT) if self.options.hint_chars else self._begin_run(team)

    def _read_goal(self, team: Team, action: str) -> tuple[Goal | None, str]:
        """Return the subtask that was named, None for silence, and what was wrong with it."""
        known = subtasks(self.course, team.node)
        if action.strip() in known:
            return known[action.strip()], ""
        if action.strip() in ("", SILENT):
            return None, ""
        try:
            goal = Goal.parse(parse_json(action))
            goal.check_names(self.course.world.vocabulary())
            if goal.status(goal.start(team.node.facts)) != OPEN:
                return None, "subtask: there is nothing left to do in it"
        except BadTask as error:
            return None, str(error)
        return goal, ""

    def _begin_run(self, team: Team) -> Team:
        self._show(team)
        return team._replace(stage=RUN)

    def _show(self, team: Team) -> None:
        seen = self.course.world.observe(team.node.state, radius=self.options.radius)
        self._emit("sight", {"seat": team.runner, **seen}, (team.runner,))

    def _run(self, number: int, team: Team, action: str) -> Team:
        node = self.course.step(team.node, action)
        trail = (*team.trail, action)
        left, goal = team.left - 1, team.goal
        progress = None if goal is None else goal.fold(team.progress, node.facts)
        end = ended(node, len(trail), self.course.spec.budget)
        told: dict[str, Any] = {"seat": team.runner, "do": action}
        over = left == 0
        if goal is not None and progress is not None and goal.status(progress) != OPEN:
            over = True
            told["subtask"] = "done" if goal.status(progress) != BROKEN else "broken"
        elif over:
            told["subtask"] = "unfinished"
        if end is not None:
            told["end"] = end
        self._emit("step", told, members(number, self.seats))
        team = team._replace(node=node, trail=trail, left=left, progress=progress)
        if over or end is not None:
            assert team.origin is not None
            done = Stretch(team.runner, goal, team.origin, node, self.options.leash - left)
            team = team._replace(stretches=(*team.stretches, done))
        if end is not None:
            return team._replace(stage=DONE, end=end)
        if over:
            return team._replace(stage=DIRECT, turn=team.turn + 1, goal=None, progress=None)
        self._show(team)
        return team

    def _close_leg(self) -> None:
        rows, earned = [], list(self.earned)
        for number, team in enumerate(self.pair):
            got = self.course.optimal / len(team.trail) if team.end == SOLVED else 0.0
            earned[number] += got
            losses = leg_losses(self.course, team.stretches)
            ran = dict.fromkeys(team.runners, 0)
            for stretch, lost in zip(team.stretches, losses, strict=True):
                ran[stretch.runner] += lost.running
            rows.append(
                {
                    "setter": team.setter,
                    "runners": list(team.runners),
                    "end": team.end,
                    "steps": len(team.trail),
                    "subtasks": team.turn + 1,
                    "earned": round(got, 6),
                    "lost_setting": sum(lost.setting for lost in losses),
                    "lost_running": list(ran.values()),
                    "moves": " ".join(team.trail),
                }
            )
        self.earned = (round(earned[0], 6), round(earned[1], 6))
        told = {"leg": self.leg, "task": self.course.data, "hash": self.course.hash}
        self._emit("legs", {**told, "optimal": self.course.optimal, "teams": rows}, EVERYONE)
        if self.leg < self.options.rounds:
            self._open_leg()
        else:
            self._end()

    def _end(self) -> None:
        self._turns = {}
        means = [value / self.options.rounds for value in self.earned]
        margin = round(means[RED] - means[BLUE], 6) + 0.0
        returns = tuple(margin if seat % 2 == RED else -margin + 0.0 for seat in range(self.seats))
        self._outcome = Outcome("relay", returns, self.teams(), self.roles())
        scores = [round(means[seat % 2], 6) for seat in range(self.seats)]
        data = {"reason": "relay", "returns": list(returns), "scores": scores}
        self._emit("end", {**data, "teams": list(self.teams()), "roles": list(self.roles())})

    def resample(self, seat: int, rng: random.Random) -> Self:
        """Draw anew what the other team did in this leg. The layout stays, and what the own team did with it."""
        if self._outcome is not None:
            return self._redealt(self.draws(), self.plies, rng)
        own = members(seat % 2, self.seats)
        running = self.pair[seat % 2].stage != DONE
        for _ in range(RESAMPLES):
            found = self._other_course(own, rng)
            if found is not None and (running or found.pair[1 - seat % 2].stage != DONE):
                return found
        return self._redealt(self.draws(), self.plies, rng)

    def _other_course(self, own: tuple[int, ...], rng: random.Random) -> Self | None:
        """Return a match in which the other team acts otherwise in this leg, None where the leg then ends sooner."""
        state: Self = self.game.replay(
            self.draws(), self.plies[: self.began], seats=self.seats, options=self.options
        )
        for ply in self.plies[self.began :]:
            turns = state.turns()
            if not turns:
                return None
            try:
                state.apply({at: ply[at] if at in own else space.sample(rng) for at, space in turns.items()})
            except ChanceNeeded:  # the leg is over sooner, and the next is drawn
                return None
        if not state.turns():
            return None
        state.chance = Chance(rng.getrandbits(63))
        return state


@lru_cache(maxsize=4096)
def _choice(names: tuple[str, ...]) -> Choice:
    return Choice(names, DIRECT, SILENT)


@lru_cache(maxsize=64)
def _hint_text(chars: int) -> Text:
    return Text(chars, HINT)
