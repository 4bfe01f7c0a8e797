"""Forge in prose."""

import json
from typing import ClassVar

from agents.prompting.full import FullTemplate
from agents.prompting.template import Line, Want, listed
from games.base import Event
from games.referee import Turn
from games.spaces import ActionSpace, Text
from games.tasks.cases import seed_case
from games.tasks.forge_setup import HINT, RELAY, SOLVED
from games.tasks.forge_view import ForgeView
from games.tasks.goals import Goal
from games.tasks.grid import LEGEND

_TABLE = """\
# Rules
- You and the others set tasks for each other: small grid worlds with a goal and a step budget.
- Each round all set a task at once, then all attempt the tasks of the others, one step at a time.
- As a solver you earn shortest plan / steps taken for what you solve, and nothing for what you do not.
- As a setter you earn most if the others solve your task about half the time and it is unlike all tasks before it;
  nothing if all or none solve it. An invalid or repeated task costs you, and pays all others.
- You want to earn more than the others."""

_RELAY = """\
# Rules
- Two teams race on the same layouts. Even seats are one team, odd seats the other.
- In each leg one seat of a team directs: it sees the whole map, names subtasks and gives hints. The others run in
  turn: a runner sees only the cells around it.
- A team earns shortest plan / steps taken if it solves the task within the budget.
- Nobody sees what the other team does before the leg is over."""

_MOVES = (
    "Actions: up, down, left, right, take (what lies here), open (a box here, or a door beside you whose "
    "key you have), drop (a gem, on a pad or the exit), wait."
)


class FullForge(FullTemplate):
    """Every mode."""

    number: ClassVar[str] = "1"

    def system(self, view: ForgeView) -> str:
        rules = _RELAY if view.mode == RELAY else _TABLE
        head = f"You play Forge with {view.seats} seats, numbered 0 to {view.seats - 1}."
        return (
            f"{head}\n\n{rules}\n- Cells are two characters: {LEGEND}\n- {_MOVES}\n\nYou are seat {self.me}."
        )

    def public(self, event: Event, view: ForgeView) -> Line | None:
        told = self.tell(event)
        if told is None:
            return None
        if event.kind in ("round", "leg"):
            return Line(told, None, opens=True)
        return Line(told, told if event.kind in ("result", "legs") else None)

    def private(self, event: Event, view: ForgeView) -> Line | None:
        # Where the seat stands is told with the turn; its steps one by one would drown the rest.
        if event.kind in ("step", "sight", "map"):
            return None
        return super().private(event, view)

    def state(self, view: ForgeView) -> list[str]:
        if view.mode == RELAY:
            return self._leg(view)
        record = [
            f"{skill} {solved} of {made}"
            for skill, (solved, made) in sorted(view.records.get(self.me, {}).items())
        ]
        return [f"You have solved so far: {'; '.join(record)}."] if record else []

    def _leg(self, view: ForgeView) -> list[str]:
        team = view.teams[self.me % 2]
        lines = [f"Your team has taken {team.steps} of {view.budget} steps in this leg."]
        if view.course is not None and team.node is not None:
            lines += [f"The task: {view.course.spec.goal.render()}", "The map now:"]
            lines += view.course.world.render(team.node.state).strip().splitlines()
        if team.sight is not None:
            x, y = team.sight["at"]
            lines += [
                f"You stand at x={x}, y={y}, holding {', '.join(team.sight['holding']) or 'nothing'}. You see:"
            ]
            lines += team.sight["rows"]
            goal = "nothing was named" if team.goal is None else Goal.parse(team.goal).render()
            lines.append(f"Your subtask: {goal}")
        return lines

    def decision(self, turn: Turn, view: ForgeView) -> list[str]:
        if turn.space.label == "set":
            return self._offers(turn, view)
        standing = view.now.get(self.me)
        if standing is None:
            return super().decision(turn, view)
        course = view.tasks[standing.setter]
        assert course is not None
        lines = [
            f"You attempt the task of seat {standing.setter}, attempt {standing.attempt + 1}.",
            f"The task: {course.spec.goal.render()}",
            f"You have taken {standing.steps} of {course.spec.budget} steps. Where you are:",
            *course.world.render(standing.node.state).strip().splitlines(),
        ]
        if standing.steps == 0 and view.last_end and view.last_end != SOLVED:
            lines.append("Your attempt before this one failed.")
        return lines

    def _offers(self, turn: Turn, view: ForgeView) -> list[str]:
        lines = ["Set a task for the others. These edits of a parent task are offered, all proven solvable:"]
        lines += [
            f"{offer['edit']}: shortest plan {offer['optimal']}, budget {offer['budget']}, things {offer['objects']}, "
            f"conditions {offer['rules']}, distractors {offer['distractors']}, skills {listed(offer['skills'])}"
            for offer in view.offers[self.me]
        ]
        if isinstance(turn.space, Text):
            example = {key: value for key, value in seed_case().to_data().items() if key != "skills"}
            example.pop("generator", None)
            lines.append(f"Or write a task of your own as JSON, such as this one: {json.dumps(example)}")
        return lines

    def form(self, space: ActionSpace, *, want: Want) -> str:
        if isinstance(space, Text) and space.label == "set" and want == "action":
            return 'Reply with one line: "Action: " followed by the name of an offer, or by a task as JSON.'
        if isinstance(space, Text) and space.label == HINT and want == "action":
            return f"Reply with nothing but a hint for the runner, at most {space.max_chars} characters."
        return super().form(space, want=want)
