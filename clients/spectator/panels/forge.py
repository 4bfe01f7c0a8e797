"""Forge's board: the tasks of the round with what came of them, the scores, and the attempt at hand as a map."""

from typing import ClassVar

from clients.spectator.drawing import Line, crop
from clients.spectator.panels.base import GamePanel, RoleLook, SeatLook, seat_span
from games.tasks.forge_setup import ATTEMPT, RELAY, SET, SMITH
from games.tasks.forge_view import ForgeView


class ForgePanel(GamePanel):
    """Draws every mode of Forge."""

    roles: ClassVar = {SMITH: RoleLook("⚒", "text")}
    speech: ClassVar = {"hint": "hints"}
    closing: ClassVar = frozenset({"task"})
    moods: ClassVar = {
        "round": "title",
        "leg": "title",
        "task": "text",
        "result": "accent",
        "legs": "accent bold",
        "scores": "dim",
        "end": "title",
    }
    ticks: ClassVar = {
        "round": ("╵", "dim"),
        "leg": ("╵", "dim"),
        "result": ("✔", "accent"),
        "legs": ("✔", "accent"),
        "end": ("◆", "accent"),
    }

    def stage(self, view: ForgeView) -> str:
        if view.returns is not None:
            return "The end"
        if view.mode == RELAY:
            return f"Leg {view.round}" if view.round else ""
        what = {SET: "setting", ATTEMPT: "attempting"}.get(view.phase, "")
        return f"Round {view.round}, {what}" if what else ""

    def seats(self, view: ForgeView, seats: int) -> list[SeatLook]:
        looks = []
        score = view.score
        for seat in range(seats):
            marks: Line = []
            if view.returns is not None:
                value = view.returns[seat]
                marks.append((f"{value:+.2f}", "good bold" if value > 0 else "evil" if value < 0 else "text"))
            elif seat < len(score):
                marks.append((f"{score[seat]:.2f}", "dim"))
            if view.mode == RELAY and view.teams:
                team = view.teams[seat % 2]
                marks.append((" ♛", "warn") if seat == team.setter else (" ▸", "accent"))
            looks.append(SeatLook(marks=marks))
        return looks

    def board(self, view: ForgeView, *, width: int) -> list[Line]:
        lines = self._legs(view) if view.mode == RELAY else self._tasks(view)
        lines += self._map(view)
        return [crop(line, width) for line in lines or [[("Nothing is set yet.", "dim")]]]

    def brief(self, view: ForgeView, *, width: int) -> list[Line]:
        lines = self._legs(view) if view.mode == RELAY else self._tasks(view)
        return [crop(line, width) for line in lines[-3:] or [[("Nothing is set yet.", "dim")]]]

    def _tasks(self, view: ForgeView) -> list[Line]:
        lines: list[Line] = []
        for task in view.history[-2 * max(view.seats, 1) :]:
            line: Line = [(f"{task.round} ", "dim"), seat_span(task.seat), (" ", "")]
            if task.course is None:
                lines.append([*line, ("✘ ", "evil"), ("no task that counts", "dim")])
                continue
            if task.p is None:
                line.append(("·········· ", "dim"))
            else:
                full = round(10 * task.p)
                line += [
                    ("█" * full, "good"),
                    ("░" * (10 - full), "dim"),
                    (f" {task.earned or 0:.2f} ", "accent"),
                ]
            optimal, budget = task.course.optimal, task.course.spec.budget
            lines.append(
                [*line, (f"{optimal}/{budget} ", "text"), (", ".join(task.course.spec.skills), "dim")]
            )
        return lines

    def _legs(self, view: ForgeView) -> list[Line]:
        styles = ("evil", "good")
        lines: list[Line] = [
            [
                (f"{leg.leg} ", "dim"),
                (("red  ", "blue ")[leg.team], styles[leg.team]),
                (f"{leg.end} {leg.steps} ", "text"),
                (f"{leg.earned:.2f}", "accent"),
            ]
            for leg in view.legs
        ]
        for number, team in enumerate(view.teams if view.phase == RELAY else ()):
            hint = f" {team.steps} of {view.budget} steps"
            lines.append([(("red ", "blue")[number], styles[number]), (hint, "text")])
        return lines

    def _map(self, view: ForgeView) -> list[Line]:
        """Return the map of the first attempt that the reader sees, if it sees one."""
        if view.mode == RELAY:
            if view.course is None or not view.teams or view.teams[0].node is None:
                return []
            course, node = view.course, view.teams[0].node
            head: Line = [("red runs", "evil")]
        else:
            shown = next(iter(sorted(view.now.items())), None)
            if shown is None:
                return []
            seat, standing = shown
            found = view.tasks.get(standing.setter)
            if found is None:
                return []
            course, node = found, standing.node
            head = [seat_span(seat), (" attempts the task of ", "dim"), seat_span(standing.setter)]
        rows = course.world.render(node.state).strip().splitlines()
        return [[("", "")], head, *([(row, "text")] for row in rows)]
