"""A duel or a round table in progress: all set a task at once, then all attempt the others', step by step, at once."""

import random
from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple, Self

from games.base import Event, Outcome, State
from games.errors import BadTask
from games.rng import Chance
from games.spaces import Action, ActionSpace, Choice, Text
from games.tasks.forge_course import Course, Node
from games.tasks.forge_setup import (
    ATTEMPT,
    BROKEN_GOAL,
    FINE,
    LOST,
    MAX_TASK_CHARS,
    OUT,
    OVER,
    POOL,
    SET,
    SMITH,
    SOLVED,
    TEAMS,
    VARIANTS,
    Offer,
    novelty,
    offer,
    offer_facts,
    per_solver,
    queue_of,
    read_task,
)
from games.tasks.goals import BROKEN, HOLDS
from games.tasks.similarity import NEAR_DUPLICATE, similarity

TASK_TEXT = Text(MAX_TASK_CHARS, "set")


class Known(NamedTuple):
    """A task that everyone has seen."""

    course: Course
    words: str
    parent: bool
    """Whether it was offered as a parent, and not set by anybody."""


class Run(NamedTuple):
    """A seat within its queue: which attempt, where in it, and what it did so far in it."""

    place: int
    node: Node
    trail: tuple[str, ...]


class Tried(NamedTuple):
    """A finished attempt."""

    seat: int
    setter: int
    end: str
    trail: tuple[str, ...]


def ended(node: Node, steps: int, budget: int) -> str | None:
    """Return how an attempt that stands at `node` after `steps` steps has ended, None while it goes on."""
    if node.status == HOLDS:
        return SOLVED
    if node.lost:
        return LOST
    if node.status == BROKEN:
        return BROKEN_GOAL
    return OUT if steps >= budget else None


class TableState(State):
    """One match of a duel or a round table."""

    __slots__ = (
        "_outcome",
        "_turns",
        "began",
        "each",
        "known",
        "offers",
        "order",
        "phase",
        "queues",
        "round",
        "runs",
        "set_scores",
        "solve_scores",
        "tasks",
        "tried",
    )

    def _start(self) -> None:
        n, options = self.seats, self.options
        self.round = 0
        self.phase = SET
        self.each = per_solver(options.attempts, n - 1)
        self.order = tuple(self._shuffle("parents", POOL))
        self.offers: tuple[Offer, ...] = ()
        self.known: tuple[Known, ...] = ()
        self.tasks: tuple[Course | None, ...] = (None,) * n
        self.queues: tuple[tuple[int, ...], ...] = ()
        self.runs: dict[int, Run] = {}
        self.tried: list[Tried] = []
        self.set_scores = self.solve_scores = (0.0,) * n
        self.began = 0
        self._turns: Mapping[int, ActionSpace] = {}
        self._outcome: Outcome | None = None
        start = {"mode": options.mode, "seats": n, "rounds": options.rounds, "each": self.each}
        self._emit("start", {**start, "prove": options.prove, "setting": options.setting})
        self._open_round()

    def turns(self) -> Mapping[int, ActionSpace]:
        return self._turns

    def outcome(self) -> Outcome | None:
        return self._outcome

    def teams(self) -> tuple[str, ...]:
        return TEAMS[: self.seats]

    def roles(self) -> tuple[str, ...]:
        return (SMITH,) * self.seats

    def _open_round(self) -> None:
        n = self.seats
        first = self.round * n
        self.round += 1
        self.phase = SET
        used = {task.course.hash for task in self.known}
        offers = []
        for seat in range(n):
            made = offer(self.order[(first + seat) % POOL], self._draw(f"edits {seat}", VARIANTS))
            edits = {name: course for name, course in made.edits.items() if course.hash not in used}
            offers.append(made if len(edits) == len(made.edits) or not edits else Offer(made.parent, edits))
            self.known = (*self.known, Known(made.parent, f"the parent offered to seat {seat}", True))
        self.offers = tuple(offers)
        told = [{"seat": seat, "edits": offer_facts(made)} for seat, made in enumerate(offers)]
        self._emit("round", {"round": self.round, "offers": told})
        if self.options.setting == "json":
            self._turns = dict.fromkeys(range(n), TASK_TEXT)
        else:
            self._turns = {seat: _choice(tuple(made.edits)) for seat, made in enumerate(offers)}

    def _apply(self, actions: Mapping[int, Action]) -> None:
        if self.phase == SET:
            self._set(actions)
        else:
            self._attempt(actions)

    # Setting

    def _set(self, actions: Mapping[int, Action]) -> None:
        before = self.known
        tasks: list[Course | None] = []
        for seat in range(self.seats):
            try:
                course, like = self._judge(seat, str(actions[seat]), before)
            except BadTask as error:
                tasks.append(None)
                self._emit("task", {"seat": seat, "task": None, "reason": str(error)})
                continue
            tasks.append(course)
            self.known = (*self.known, Known(course, self._words(seat), False))
            told = {"seat": seat, "task": course.data, "hash": course.hash, "optimal": course.optimal}
            self._emit("task", {**told, "likeness": like})
        self.tasks = tuple(tasks)
        valid = tuple(seat for seat, course in enumerate(tasks) if course is not None)
        self.queues = tuple(
            queue_of(seat, self.seats, valid=valid, each=self.each, prove=self.options.prove)
            for seat in range(self.seats)
        )
        self.phase, self.began, self.tried = ATTEMPT, len(self.plies), []
        self.runs = {seat: self._run(seat, 0) for seat, queue in enumerate(self.queues) if queue}
        self._turns = {seat: _space(run.node) for seat, run in self.runs.items()}
        if not self.runs:
            self._close_round()

    def _judge(self, seat: int, text: str, before: tuple[Known, ...]) -> tuple[Course, float]:
        """Return the task that a seat set and its likeness to what was known. Raises `BadTask` with the reason."""
        offered = self.offers[seat].edits.get(text.strip())
        course = read_task(text, max_budget=self.options.max_budget) if offered is None else offered
        like, words = _likeness(course, before, parents=offered is None)
        if like >= NEAR_DUPLICATE:
            raise BadTask(f"task: is nearly {words} (similarity {like:.3f})")
        return course, round(like, 4)

    def _words(self, seat: int) -> str:
        return f"the task of seat {seat} in round {self.round}"

    # Attempting

    def _run(self, seat: int, place: int) -> Run:
        course = self.tasks[self.queues[seat][place]]
        assert course is not None
        return Run(place, course.start, ())

    def _attempt(self, actions: Mapping[int, Action]) -> None:
        turns: dict[int, ActionSpace] = {}
        history, runs, queues, tasks = self.history, self.runs, self.queues, self.tasks
        for seat in sorted(actions):  # the order in which answers came is no part of the rules
            run, action = runs[seat], actions[seat]
            setter = queues[seat][run.place]
            course: Any = tasks[setter]
            node = course.step(run.node, action)
            trail = (*run.trail, str(action))
            end = ended(node, len(trail), course.spec.budget)
            if end is None:
                runs[seat] = Run(run.place, node, trail)
                history.append(_step(seat, str(action)))
                turns[seat] = node.space
                continue
            self._emit("step", {"seat": seat, "do": action, "end": end}, (seat,))
            self.tried.append(Tried(seat, setter, end, trail))
            if run.place + 1 < len(queues[seat]):
                runs[seat] = after = self._run(seat, run.place + 1)
                turns[seat] = _space(after.node)
            else:
                del runs[seat]
        self._turns = turns
        if not turns:
            self._close_round()

    def _close_round(self) -> None:
        set_scores, solve_scores = list(self.set_scores), list(self.solve_scores)
        for setter, course in enumerate(self.tasks):
            if course is None:
                set_scores[setter] -= FINE
                for seat in range(self.seats):
                    solve_scores[seat] += seat != setter
                self._emit("result", {"seat": setter, "valid": False, "earned": -FINE})
                continue
            found = [one for one in self.tried if one.setter == setter and one.seat != setter]
            own = [one.end == SOLVED for one in self.tried if one.setter == setter == one.seat]
            p = sum(one.end == SOLVED for one in found) / len(found)
            mine = self._words(setter)
            others = tuple(known for known in self.known if known.words != mine)
            offered = course in self.offers[setter].edits.values()
            new = novelty(_likeness(course, others, parents=not offered)[0])
            earned = round(4 * p * (1 - p) * new, 6) if all(own) else 0.0
            set_scores[setter] += earned
            rows = []
            for one in sorted(found, key=lambda one: one.seat):
                got = course.optimal / len(one.trail) if one.end == SOLVED else 0.0
                solve_scores[one.seat] += got / self.each
                rows.append([one.seat, one.end, len(one.trail), round(got, 6)])
            told: dict[str, Any] = {
                "seat": setter,
                "valid": True,
                "p": round(p, 6),
                "novelty": new,
                "earned": earned,
            }
            told |= {"error": round(sqrt(p * (1 - p) / len(found)), 6), "attempts": rows}
            if own:
                told["proved"] = all(own)
            self._emit("result", told)
        self.set_scores = tuple(round(value, 6) for value in set_scores)
        self.solve_scores = tuple(round(value, 6) for value in solve_scores)
        moves = [[one.seat, one.setter, " ".join(one.trail)] for one in self.tried]
        self._emit("scores", {"set": list(self.set_scores), "solve": list(self.solve_scores), "moves": moves})
        self.tried = []
        if self.round < self.options.rounds:
            self._open_round()
        else:
            self._end()

    def _end(self) -> None:
        self.phase = OVER
        self._turns = {}
        scores = [round(a + b, 6) for a, b in zip(self.set_scores, self.solve_scores, strict=True)]
        mean = sum(scores) / len(scores)
        returns = tuple(round(score - mean, 6) + 0.0 for score in scores)
        self._outcome = Outcome("score", returns, self.teams(), self.roles())
        data = {"reason": "score", "returns": list(returns), "scores": scores}
        self._emit("end", {**data, "teams": list(self.teams()), "roles": list(self.roles())})

    def resample(self, seat: int, rng: random.Random) -> Self:
        """Draw anew what the others did since the round's tasks were set; the rest is public."""
        if self.phase != ATTEMPT:
            return self._redealt(self.draws(), self.plies, rng)
        played = self.plies[self.began :]
        state: Self = self.game.replay(
            self.draws(), self.plies[: self.began], seats=self.seats, options=self.options
        )
        busy = [other for other in self.runs if other != seat]
        # Some other seat is known to act still where this one has finished; which one is not.
        kept = rng.choice(busy) if busy and seat not in self.runs else None
        for ply in played:
            actions: dict[int, Action] = {}
            for other, space in state.turns().items():
                actions[other] = ply[other] if other in (seat, kept) else space.sample(rng)
            state.apply(actions)
        state.chance = Chance(rng.getrandbits(63))
        return state


def _space(node: Node) -> ActionSpace:
    assert node.space is not None
    return node.space


@lru_cache(maxsize=4096)
def _step(seat: int, action: str) -> Event:
    return Event("step", {"seat": seat, "do": action}, (seat,))


@lru_cache(maxsize=1024)
def _choice(names: tuple[str, ...]) -> Choice:
    return Choice(names, "set", names[0])


def _likeness(course: Course, known: tuple[Known, ...], *, parents: bool) -> tuple[float, str]:
    """Return how like a task is to the most similar of the known ones, and which that is.

    An offered edit is proven to differ from its parent, and so is compared to tasks that were set alone.
    """
    return max(
        (
            (similarity(course.vector, task.course.vector), task.words)
            for task in known
            if parents or not task.parent
        ),
        default=(0.0, ""),
    )
