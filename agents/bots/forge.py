"""Bots for Forge: planners with a skill knob, and setters by strategy.

A planner follows a shortest way from where it stands with probability `skill`, and does anything legal otherwise. A
setter chooses among the offered edits by what the public record says of the others:

    random      any
    curve       the one that the others should solve half the time
    bottleneck  one that takes the others' weakest skill, and of those the nearest to half
    coverage    the one whose skills and number of things were set least often in the match

Expected success is a logistic curve over an edit's effort, moved by the results so far. In a relay the setter names
what the shortest way makes true next and hints at that way, a letter a step; the runner follows the hint.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from agents.base import Bot, Decision
from agents.bots.forge_routes import route
from games.referee import Turn
from games.rng import derive_seed
from games.spaces import ActionSpace
from games.tasks.forge_course import Course, Node
from games.tasks.forge_relay import subtasks
from games.tasks.forge_setup import RELAY, SILENT
from games.tasks.forge_view import ForgeView

STEEPNESS = 2.0
"""How fast expected success falls with the logarithm of effort."""
PRIOR_EDGE = math.log(2.0)
"""The logarithm of the effort that is expected to be solved half the time before anything is known."""
LEARNING = 0.6
"""How far a result moves the edge, for each unit of surprise."""

LETTERS = {
    "up": "u",
    "down": "d",
    "left": "l",
    "right": "r",
    "take": "t",
    "open": "o",
    "drop": "p",
    "wait": "w",
}
"""How a planner writes a way as a hint."""
WORDS = {letter: action for action, letter in LETTERS.items()}
BACK = {"up": "down", "down": "up", "left": "right", "right": "left"}

Offers = list[dict[str, Any]]
Strategy = Callable[[ForgeView, int, Offers], Callable[[dict[str, Any]], float]]
"""From what is known, one's own seat and the offers to how unwelcome an offer is; the least unwelcome is set."""


def effort(optimal: int, budget: int) -> float:
    """Return the length of the shortest plan over the steps to spare."""
    return optimal / (budget - optimal + 1)


def expected(optimal: int, budget: int, *, edge: float) -> float:
    """Return the share of attempts at such a task that should succeed."""
    return 1 / (1 + math.exp(STEEPNESS * (math.log(effort(optimal, budget)) - edge)))


def edge_of(view: ForgeView) -> float:
    """Return the logarithm of the effort that is solved half the time, by the results so far."""
    edge = PRIOR_EDGE
    for task in view.history:
        if task.course is not None and task.p is not None:
            guess = expected(task.course.optimal, task.course.spec.budget, edge=edge)
            edge += LEARNING * (task.p - guess)
    return edge


def _curve(view: ForgeView, me: int, offers: Offers) -> Callable[[dict[str, Any]], float]:
    edge = edge_of(view)
    return lambda offer: abs(expected(offer["optimal"], offer["budget"], edge=edge) - 0.5)


def _bottleneck(view: ForgeView, me: int, offers: Offers) -> Callable[[dict[str, Any]], float]:
    far = _curve(view, me, offers)
    weakest = weakest_skill(view, me, {skill for offer in offers for skill in offer["skills"]})
    return lambda offer: far(offer) + (weakest not in offer["skills"])


def _coverage(view: ForgeView, me: int, offers: Offers) -> Callable[[dict[str, Any]], float]:
    far = _curve(view, me, offers)
    seen = Counter(
        (frozenset(task.course.spec.skills), round(dict(task.course.spec.difficulty)["objects"]))
        for task in view.history
        if task.course is not None
    )
    return lambda offer: seen[frozenset(offer["skills"]), offer["objects"]] + far(offer) / 2


def _random(view: ForgeView, me: int, offers: Offers) -> Callable[[dict[str, Any]], float]:
    return lambda offer: 0.0


STRATEGIES: dict[str, Strategy] = {
    "curve": _curve,
    "bottleneck": _bottleneck,
    "coverage": _coverage,
    "random": _random,
}


def weakest_skill(view: ForgeView, me: int, skills: set[str]) -> str | None:
    """Return which of `skills` the others solve least often, None while nothing is known of them."""
    shares: dict[str, float] = {}
    for skill in skills:
        rows = [record.get(skill, (0, 0)) for seat, record in view.records.items() if seat != me]
        made = sum(row[1] for row in rows)
        if made:
            shares[skill] = sum(row[0] for row in rows) / made
    return min(shares, key=lambda skill: (shares[skill], skill), default=None)


class PlannerBot(Bot):
    """Plans its way through the tasks, and sets the offer that the others should solve half the time."""

    version = "1"
    skill: float = 0.9
    """How often a step follows the plan."""
    strategy: ClassVar[str] = "curve"

    def decide(self, turn: Turn) -> Decision:
        view: ForgeView = self.view
        match turn.space.label:
            case "set":
                return Decision(self.set_task(view))
            case "direct":
                return Decision(self.direct(view))
            case "hint":
                return Decision(self.hint(view, turn.space))
        if view.mode == RELAY:
            return Decision(self.run(view, turn.space))
        return Decision(self.step(view, turn.space))

    def draw(self) -> int:
        """Return a number of 62 bits for the decision at hand; cheaper than a generator."""
        return derive_seed(self.seat.seed, self.events_seen) >> 1

    def set_task(self, view: ForgeView) -> str:
        """Return the name of the offer to set."""
        me = self.seat.seat
        offers, draw = view.offers[me], self.draw()
        unwelcome = STRATEGIES[self.strategy](view, me, offers)
        order = [(i + draw) % len(offers) for i in range(len(offers))]
        best = min(order, key=lambda i: round(unwelcome(offers[i]), 9))
        return str(offers[best]["edit"])

    def step(self, view: ForgeView, space: ActionSpace) -> str:
        """Return the next step of the attempt at hand."""
        options: tuple[str, ...] = getattr(space, "options", ())
        standing, draw = view.now[self.seat.seat], self.draw()
        course = view.tasks[standing.setter]
        if course is not None and (draw >> 30) / (1 << 32) < self.skill:
            action = route(course, standing.node)
            if action is not None:
                return action
        return options[draw % (1 << 30) % len(options)]

    # Relay

    def direct(self, view: ForgeView) -> str:
        """Return the subtask to name: what the shortest way makes true next."""
        team = view.teams[self.seat.seat % 2]
        course, node = view.course, team.node
        if course is None or node is None:
            return SILENT
        named = subtasks(course, node)
        for action in _way(course, node):
            node = course.step(node, action)
            new = [words for words, goal in named.items() if goal.facts() <= node.facts]
            if new:
                return new[0]
        return SILENT

    def hint(self, view: ForgeView, space: ActionSpace) -> str:
        """Return the first steps of the shortest way, a letter each."""
        team = view.teams[self.seat.seat % 2]
        if view.course is None or team.node is None:
            return ""
        way = _way(view.course, team.node)[: min(view.leash, view.hint_chars)]
        return "".join(LETTERS.get(action, "?") for action in way)

    def run(self, view: ForgeView, space: ActionSpace) -> str:
        """Return a runner's next step: as the hint says, or by what lies at hand."""
        options: tuple[str, ...] = getattr(space, "options", ())
        draw = self.draw()
        if (draw >> 30) / (1 << 32) < self.skill:
            team = view.teams[self.seat.seat % 2]
            action = hinted(team.hint, team.moves)
            if action in options:
                return action
            for useful in ("take", "open", "drop"):
                if useful in options:
                    return useful
            options = tuple(option for option in options if option != "wait") or options
        return options[draw % (1 << 30) % len(options)]


def hinted(hint: str, moves: tuple[str, ...]) -> str:
    """Return the step that a hint of letters asks for after `moves`; steps aside are taken back first."""
    place = 0
    aside: list[str] = []
    for move in moves:
        if aside and move == BACK.get(aside[-1]):
            aside.pop()
        elif not aside and place < len(hint) and move == WORDS.get(hint[place]):
            place += 1
        elif move in BACK:
            aside.append(move)
    if aside:
        return BACK[aside[-1]]
    return WORDS.get(hint[place : place + 1], "")


def _way(course: Course, node: Node) -> list[str]:
    """Return the shortest way known from `node` to the goal, empty where none was found."""
    way: list[str] = []
    while not node.solved and (action := route(course, node)) is not None and len(way) <= course.spec.budget:
        way.append(action)
        node = course.step(node, action)
    return way


class ScriptedBot(PlannerBot):
    """A planner of middling skill."""

    skill = 0.7


class BottleneckBot(PlannerBot):
    """Sets what takes the others' weakest skill."""

    strategy: ClassVar[str] = "bottleneck"


class CoverageBot(PlannerBot):
    """Sets what is least like the tasks so far."""

    strategy: ClassVar[str] = "coverage"


class AnySetterBot(PlannerBot):
    """Sets any offer."""

    strategy: ClassVar[str] = "random"
