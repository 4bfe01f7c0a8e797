"""Forge in few words."""

from typing import ClassVar

from agents.prompting.compact import CompactTemplate, words
from agents.prompting.template import Line
from games.base import Event
from games.referee import Turn
from games.tasks.forge_setup import RELAY
from games.tasks.forge_view import ForgeView, Standing
from games.tasks.goals import Goal

NEAR = 2
"""How many cells around itself an actor is told of."""


class CompactForge(CompactTemplate):
    """`task 1 optimal 9 budget 15` · `result 1 solved 4 of 9` · `goal …` · `see …` · `ask step`."""

    number: ClassVar[str] = "1"

    def system(self, view: ForgeView) -> str:
        return f"forge {view.mode} seats {view.seats}"

    def public(self, event: Event, view: ForgeView) -> Line | None:
        data = event.data
        match event.kind:
            case "round":
                return Line(f"round {data['round']}", None, opens=True)
            case "leg":
                return Line(f"round {data['leg']}", None, opens=True)
            case "task":
                if data["task"] is None:
                    told = f"task {data['seat']} none"
                else:
                    told = f"task {data['seat']} in {data['optimal']} of {data['task']['budget']}"
                return Line(told, None)
            case "result" if data["valid"]:
                solved = sum(row[1] == "solved" for row in data["attempts"])
                told = f"result {data['seat']} {solved} of {len(data['attempts'])}"
                return Line(told, told)
            case "legs":
                told = f"result {' '.join(team['end'] for team in data['teams'])}"
                return Line(told, told)
        return None

    def private(self, event: Event, view: ForgeView) -> Line | None:
        if event.kind == "direct":
            goal = event.data["goal"]
            return Line(f"goal {'none' if goal is None else brief_goal(Goal.parse(goal))}")
        if event.kind == "hint":
            return Line(f"hint {len(event.data['text'])}")
        return None

    def state(self, turn: Turn, view: ForgeView) -> list[str]:
        lines = [f"you {self.me}"]
        if turn.space.label == "set":
            lines += [
                f"{offer['edit']} in {offer['optimal']} of {offer['budget']}"
                for offer in view.offers[self.me]
            ]
        elif view.mode == RELAY:
            lines += self._leg(view)
        elif (standing := view.now.get(self.me)) is not None:
            lines += self._attempt(view, standing)
        return lines

    def _attempt(self, view: ForgeView, standing: Standing) -> list[str]:
        course = view.tasks[standing.setter]
        assert course is not None
        seen = course.world.observe(standing.node.state, radius=NEAR)
        return [
            f"goal {brief_goal(course.spec.goal)}",
            f"step {standing.steps} of {course.spec.budget}",
            *see(seen),
        ]

    def _leg(self, view: ForgeView) -> list[str]:
        team = view.teams[self.me % 2]
        lines = [f"step {team.steps} of {view.budget}"]
        if view.course is not None:
            lines.append(f"goal {brief_goal(view.course.spec.goal)}")
        return lines if team.sight is None else [*lines, *see(team.sight)]


def brief_goal(goal: Goal) -> str:
    """Return a goal in few words: its predicates in order, and the operators that matter."""
    told = goal.render().removesuffix(".").lower()
    for long, short in (
        ("have the ", ""),
        ("stand at the ", "at "),
        ("visit the ", "at "),
        ("hold the ", "has "),
    ):
        told = told.replace(long, short)
    return told.replace(",", "").replace(" the ", " ")


def see(seen: dict[str, object]) -> list[str]:
    """Return what is told of the actor's surroundings, whatever its world."""
    lines = [f"hold {words(seen.get('holding', ()))}"]
    rows = seen.get("rows")
    if isinstance(rows, list):
        lines += [f"see {' '.join(str(row).split())}" for row in rows]
    return lines
