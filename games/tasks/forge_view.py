"""What a reader of a Forge match knows: the tasks, every seat's record, and where it stands in its own attempts."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from games.base import Event, View
from games.tasks.forge_course import Course, Node, course_from
from games.tasks.forge_setup import ATTEMPT, DIRECT, DONE, HINT, OVER, RELAY, RUN, SET, SOLVED, queue_of


class Standing(NamedTuple):
    """Where a seat (a team, in a relay) stands in an attempt."""

    setter: int
    attempt: int
    """From 0 among its attempts at this task."""
    node: Node
    steps: int


class SetTask(NamedTuple):
    """A task that was set, and what came of it."""

    round: int
    seat: int
    course: Course | None
    reason: str = ""
    p: float | None = None
    error: float | None = None
    novelty: float | None = None
    earned: float | None = None


class TeamSeen(NamedTuple):
    """Where a team of a relay stands in its leg, as far as its members see it."""

    setter: int
    runners: tuple[int, ...]
    stage: str = DIRECT
    turn: int = 0
    steps: int = 0
    goal: Any = None
    """The subtask as data; None where the setter was silent or none is set."""
    hint: str = ""
    moves: tuple[str, ...] = ()
    """What was done since the subtask was set."""
    node: Node | None = None
    """Known to whom the map was shown."""
    sight: dict[str, Any] | None = None
    """What the runner last saw; known to the runner."""
    end: str = ""

    @property
    def runner(self) -> int:
        """Whose turn to run it is."""
        return self.runners[self.turn % len(self.runners)]


class Leg(NamedTuple):
    """A finished leg of one team of a relay."""

    leg: int
    team: int
    setter: int
    runners: tuple[int, ...]
    end: str
    steps: int
    subtasks: int
    earned: float
    lost_setting: int
    """Steps that the team lost by how it was directed (`games.tasks.forge_credit`)."""
    lost_running: tuple[int, ...]
    """Steps that each runner lost, in the order of `runners`."""


@dataclass(slots=True)
class ForgeView(View):
    """What is known of a match.

    `records[seat][skill]` is how many of its attempts at tasks of that skill a seat solved, and how many it made;
    `tried` the same for every setter's tasks. `now` is each seat's attempt at hand, as far as this reader sees it.
    """

    seat: int | None
    mode: str = ""
    seats: int = 0
    rounds: int = 0
    round: int = 0
    each: int = 0
    prove: bool = False
    setting: str = "offers"
    phase: str = ""
    offers: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    tasks: dict[int, Course | None] = field(default_factory=dict)
    history: list[SetTask] = field(default_factory=list)
    now: dict[int, Standing] = field(default_factory=dict)
    records: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    set_scores: tuple[float, ...] = ()
    solve_scores: tuple[float, ...] = ()
    last_end: str = ""
    """How this seat's attempt before the one at hand ended."""
    returns: tuple[float, ...] | None = None

    places: dict[int, int] = field(default_factory=dict)
    queues: tuple[tuple[int, ...], ...] = ()

    course: Course | None = None
    """Of a relay's leg, where this reader was shown the map."""
    budget: int = 0
    teams: tuple[TeamSeen, ...] = ()
    legs: list[Leg] = field(default_factory=list)
    radius: int = 0
    leash: int = 0
    hint_chars: int = 0

    @property
    def score(self) -> tuple[float, ...]:
        """What each seat has earned so far, setting and solving."""
        return tuple(round(a + b, 3) for a, b in zip(self.set_scores, self.solve_scores, strict=True))

    @property
    def stage(self) -> str:
        """The stage of this seat's team in the leg at hand, empty for others and elsewhere."""
        if self.seat is None or not self.teams or self.phase != RELAY:
            return ""
        return self.teams[self.seat % 2].stage

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.phase == OVER

    def update(self, event: Event) -> None:
        tell = getattr(self, f"_on_{event.kind}", None)
        if tell is not None:
            tell(event.data)

    def asked(self, options: Any) -> tuple[int, ...]:
        if self.phase == SET:
            return tuple(range(self.seats))
        if self.phase == ATTEMPT and self.seat in self.now:
            return () if self.seat is None else (self.seat,)
        if self.stage in (DIRECT, HINT, RUN) and self.seat is not None:
            team = self.teams[self.seat % 2]
            return (team.runner if team.stage == RUN else team.setter,)
        return ()

    def _on_start(self, data: dict[str, Any]) -> None:
        self.mode, self.seats, self.rounds = data["mode"], data["seats"], data["rounds"]
        if self.mode == RELAY:
            self.radius, self.leash = data["radius"], data["leash"]
            self.hint_chars = data["hint_chars"]
            return
        self.each, self.prove, self.setting = data["each"], data["prove"], data["setting"]
        self.set_scores = self.solve_scores = (0.0,) * self.seats

    def _on_round(self, data: dict[str, Any]) -> None:
        self.round, self.phase = data["round"], SET
        self.offers = {offer["seat"]: offer["edits"] for offer in data["offers"]}
        self.tasks, self.now, self.last_end = {}, {}, ""

    def _on_task(self, data: dict[str, Any]) -> None:
        seat = data["seat"]
        task = data["task"]
        course = None if task is None else course_from(task, hash=data["hash"])
        self.tasks[seat] = course
        self.history.append(SetTask(self.round, seat, course, data.get("reason", "")))
        if len(self.tasks) < self.seats:
            return
        self.phase = ATTEMPT
        valid = tuple(other for other in range(self.seats) if self.tasks[other] is not None)
        self.queues = tuple(
            queue_of(other, self.seats, valid=valid, each=self.each, prove=self.prove)
            for other in range(self.seats)
        )
        self.places = {}
        # A reader without a seat learns by a seat's first step that it sees them at all.
        if self.seat is not None and self.queues[self.seat]:
            self._begin(self.seat, 0)

    def _begin(self, seat: int, place: int) -> None:
        queue = self.queues[seat]
        if place == len(queue):
            self.now.pop(seat, None)
            return
        course = self.tasks[queue[place]]
        assert course is not None
        self.places[seat] = place
        attempt = place - queue.index(queue[place])
        self.now[seat] = Standing(queue[place], attempt, course.start, 0)

    def _on_step(self, data: dict[str, Any]) -> None:
        seat = data["seat"]
        if self.mode == RELAY:
            self._on_run(data)
            return
        if seat not in self.now:
            self._begin(seat, 0)
        standing = self.now[seat]
        if "end" in data:
            self.last_end = data["end"]
            self._begin(seat, self.places[seat] + 1)
            return
        course = self.tasks[standing.setter]
        assert course is not None
        node = course.step(standing.node, data["do"])
        self.now[seat] = Standing(standing.setter, standing.attempt, node, standing.steps + 1)

    def _on_result(self, data: dict[str, Any]) -> None:
        self.now = {}
        setter = data["seat"]
        for i in range(len(self.history) - 1, -1, -1):
            old = self.history[i]
            if old.round == self.round and old.seat == setter:
                more = (data.get("p"), data.get("error"), data.get("novelty"), data["earned"])
                self.history[i] = SetTask(old.round, setter, old.course, old.reason, *more)
                break
        course = self.tasks.get(setter)
        if course is None:
            return
        for seat, end, _, _ in data.get("attempts", ()):
            record = self.records.setdefault(seat, {})
            for skill in course.spec.skills:
                solved, made = record.get(skill, (0, 0))
                record[skill] = (solved + (end == SOLVED), made + 1)

    def _on_scores(self, data: dict[str, Any]) -> None:
        self.set_scores, self.solve_scores = tuple(data["set"]), tuple(data["solve"])

    def _on_end(self, data: dict[str, Any]) -> None:
        self.phase, self.returns = OVER, tuple(data["returns"])
        self.now = {}

    # Relay

    def _on_leg(self, data: dict[str, Any]) -> None:
        self.round, self.phase, self.course = data["leg"], RELAY, None
        self.budget = data["budget"]
        self.teams = tuple(TeamSeen(team["setter"], tuple(team["runners"])) for team in data["teams"])

    def _on_map(self, data: dict[str, Any]) -> None:
        course = self.course = course_from(data["task"], hash=data["hash"])
        self.teams = tuple(team._replace(node=course.start) for team in self.teams)

    def _change(self, seat: int, **changes: Any) -> None:
        teams = list(self.teams)
        teams[seat % 2] = teams[seat % 2]._replace(**changes)
        self.teams = tuple(teams)

    def _on_direct(self, data: dict[str, Any]) -> None:
        stage = HINT if self.hint_chars else RUN
        self._change(data["seat"], stage=stage, goal=data["goal"], hint="", moves=())

    def _on_hint(self, data: dict[str, Any]) -> None:
        self._change(data["seat"], stage=RUN, hint=data["text"])

    def _on_sight(self, data: dict[str, Any]) -> None:
        self._change(data["seat"], sight=data)

    def _on_run(self, data: dict[str, Any]) -> None:
        seat = data["seat"]
        team = self.teams[seat % 2]
        changes: dict[str, Any] = {"steps": team.steps + 1, "moves": (*team.moves, data["do"])}
        if self.course is not None and team.node is not None:
            changes["node"] = self.course.step(team.node, data["do"])
        if "end" in data:
            changes |= {"stage": DONE, "end": data["end"]}
        elif "subtask" in data:
            changes |= {"stage": DIRECT, "turn": team.turn + 1, "goal": None, "sight": None}
        self._change(seat, **changes)

    def _on_legs(self, data: dict[str, Any]) -> None:
        for number, row in enumerate(data["teams"]):
            facts = (row["end"], row["steps"], row["subtasks"], row["earned"], row["lost_setting"])
            seats = (row["setter"], tuple(row["runners"]))
            self.legs.append(Leg(data["leg"], number, *seats, *facts, tuple(row["lost_running"])))
        self.phase = ""
