"""Forge, the game in which agents set tasks for each other: its rules in words, and its events as sentences.

The setter's reward 4p(1 - p) is the learnability of a task (Tzannetos et al., "Proximal Curriculum for Reinforcement
Learning Agents", 2023, and Rutherford et al., "No Regrets", NeurIPS 2024, up to a factor), times how new it is.
"""

from typing import Any

from games.base import Event, Game, State
from games.errors import BadOption
from games.tasks.forge_course import course_from
from games.tasks.forge_relay import RelayState
from games.tasks.forge_setup import (
    BROKEN_GOAL,
    DUEL,
    FINE,
    FULL_NOVELTY,
    LOST,
    MAX_OFFER_BUDGET,
    OUT,
    RELAY,
    ROUND_TABLE,
    SMITH,
    SOLVED,
    TEAMS,
    ForgeOptions,
    per_solver,
)
from games.tasks.forge_table import TableState
from games.tasks.forge_view import ForgeView
from games.tasks.goals import Goal
from games.tasks.similarity import NEAR_DUPLICATE
from games.text import quote

SEATS = {DUEL: (2, 2), ROUND_TABLE: (2, 6), RELAY: (4, 8)}

RULES = f"""\
# Forge

Everyone sets tasks and everyone solves those of the others. A task is a small grid world with a goal and a step
budget. The best task is one that the others solve about half the time, and that is unlike all tasks before it.

## Duel and round table (`mode=duel`, `mode=round-table`)

A match has `rounds` rounds. In each:

1. **Setting.** All seats set a task at once. Each is offered edits of a parent task, each proven solvable; with
   `setting=json` a seat may instead write a task as JSON. The solver checks what was written. A task that is
   malformed, over `max_budget` steps, not proven solvable within its budget, solved before the first step, or a
   near-duplicate (similarity {NEAR_DUPLICATE} or more) of a task set before or of a parent is invalid, and all are
   told why.
2. **Attempting.** All seats attempt the tasks of the others at once, one step each in every ply, task after task.
   Each task gets at least `attempts` attempts in all, several in a row by each solver where solvers are few. Nobody
   sees the steps of the others before the round is over. An attempt ends when the goal holds, when it is lost or can
   no longer be met, or when the budget is used up. With `prove` each seat also attempts its own task first, once.
3. **Scoring.** A solver earns, for each task of another, the mean over its attempts of: shortest plan ÷ steps
   taken if solved, else 0. A setter earns 4p(1 - p) × novelty, p being the share of the others' attempts that
   solved it: nothing for what all or none can do. Novelty is 1 up to a similarity of {FULL_NOVELTY} to the most
   similar other task known, and falls to 0 at {NEAR_DUPLICATE}. With `prove` a setter that did not solve its own
   task earns nothing for it. An invalid task costs its setter {FINE}, and counts as solved by everyone else.

The public record says how often each seat solved tasks of each skill.

The return is what a seat earned, less the mean of all seats.

## Relay (`mode=relay`)

Two teams, the even seats (red) and the odd seats (blue), race on the same layouts, one a leg, `rounds` legs. In each
leg one seat of a team is its setter, the others run; the roles rotate. The setter sees the whole map and the task,
a runner only the cells at most `radius` away from it.

1. The setter names a subtask, a condition in the goal language (or `silent`: none), and gives a hint of at most
   `hint_chars` characters.
2. The runner whose turn it is plays until the subtask holds, or for `leash` steps. Then the setter names the next
   subtask, and the next runner takes over where the last one stands.
3. A team's leg ends when the task's goal holds, when it is lost or can no longer be met, or when the budget is used
   up. Teams do not see each other until both have ended.

A team earns shortest plan ÷ steps taken if it solved the task, else 0. The return is the difference of the teams'
mean earnings a leg.

When a leg is over, everybody is told which steps each team lost: its steps and those that its end left to do, less the
shortest plan. Of a subtask's share, the setter lost what the best runner would have lost doing as told (everything,
where none was named or it could not be met any more), the runner the rest.

## Answers

A seat that gives no legal answer sets the first edit that it is offered, waits, stays silent, or (writing JSON) sets
an invalid task.

Sources: learnability as a setter's reward after Rutherford et al., "No Regrets: Investigating and Improving Regret
Approximations for Curriculum Discovery" (2024); setting tasks for each other after Sukhbaatar et al., "Intrinsic
Motivation and Automatic Curricula via Asymmetric Self-Play" (2018).
"""


class Forge(Game):
    """Forge: 2 to 6 seats, or two teams of 2 to 4."""

    name = "forge"
    title = "Forge"
    version = "1"
    seats = (2, 8)
    default_seats = 3
    team_names = TEAMS
    sides_differ = False
    role_names = (SMITH,)
    simultaneous = True
    rules = RULES
    options_type = ForgeOptions
    state_type = TableState
    view_type = ForgeView

    def check(self, seats: int, options: Any) -> None:
        low, high = SEATS[options.mode]
        if not low <= seats <= high or (options.mode == RELAY and seats % 2):
            allowed = {DUEL: "2", ROUND_TABLE: "2 to 6", RELAY: "4, 6 or 8"}[options.mode]
            raise BadOption(
                f"forge option mode: got {options.mode!r} with {seats} seats, it is played by {allowed}"
            )

    def state_for(self, options: Any) -> type[State]:
        return RelayState if options.mode == RELAY else TableState

    def max_plies(self, seats: int, options: Any) -> int:
        chosen = self.parse_options(options)
        assert isinstance(chosen, ForgeOptions)
        longest = max(chosen.max_budget, MAX_OFFER_BUDGET)
        if chosen.mode == RELAY:
            return chosen.rounds * 3 * longest
        each = per_solver(chosen.attempts, seats - 1)
        return chosen.rounds * (1 + ((seats - 1) * each + int(chosen.prove)) * longest)

    def narrate(self, event: Event) -> str | None:
        tell = _TALES.get(event.kind)
        return None if tell is None else tell(event.data)


def _start(data: dict[str, Any]) -> str:
    if data["mode"] == RELAY:
        return f"{data['seats']} seats in two teams run a relay of {_count(data['rounds'], 'leg')}."
    proof = " Every setter must solve its own task." if data["prove"] else ""
    return (
        f"{data['seats']} seats set tasks for each other in {_count(data['rounds'], 'round')}; "
        f"each solver attempts a task {_count(data['each'], 'time')}.{proof}"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _round(data: dict[str, Any]) -> str:
    offers = [
        f"seat {offer['seat']} "
        + ", ".join(f"{edit['edit']} ({edit['optimal']} of {edit['budget']})" for edit in offer["edits"])
        for offer in data["offers"]
    ]
    return (
        f"Round {data['round']}: all seats set a task. Offered, with the shortest plan of the budget, are to "
        f"{'; to '.join(offers)}."
    )


def _task(data: dict[str, Any]) -> str:
    if data["task"] is None:
        return f"Seat {data['seat']} sets no task that counts: {quote(data['reason'])}"
    spec = course_from(data["task"], hash=data["hash"]).spec
    skills = ", ".join(spec.skills)
    return f"Seat {data['seat']} sets a task ({skills}; shortest plan {data['optimal']}): {spec.text}"


_ENDS = {
    SOLVED: "solved it",
    LOST: "is lost",
    BROKEN_GOAL: "can no longer meet the goal",
    OUT: "is out of steps",
}


def _step(data: dict[str, Any]) -> str:
    end = data.get("end")
    told = f"Seat {data['seat']}: {data['do']}."
    if end:
        return f"{told} It {_ENDS[end]}."
    if "subtask" in data:
        return f"{told} The subtask is {data['subtask']}."
    return told


def _result(data: dict[str, Any]) -> str:
    if not data["valid"]:
        return f"Seat {data['seat']} set no valid task and loses {-data['earned']:g}."
    solved = sum(end == SOLVED for _, end, _, _ in data["attempts"])
    proof = "" if data.get("proved", True) else " It did not solve it itself."
    return (
        f"The task of seat {data['seat']} was solved in {solved} of {_count(len(data['attempts']), 'attempt')} "
        f"(p = {data['p']:.2f} ± {data['error']:.2f}), novelty {data['novelty']:.2f}: it earns {data['earned']:.2f}."
        + proof
    )


def _scores(data: dict[str, Any]) -> str:
    rows = [
        f"seat {seat} {a + b:.2f}" for seat, (a, b) in enumerate(zip(data["set"], data["solve"], strict=True))
    ]
    return f"Earned so far: {', '.join(rows)}."


def _end(data: dict[str, Any]) -> str:
    best = max(data["returns"])
    winners = [f"seat {seat}" for seat, value in enumerate(data["returns"]) if value == best]
    scores = ", ".join(f"{score:.2f}" for score in data["scores"])
    if len(winners) == len(data["returns"]):
        return f"All end level ({scores})."
    return f"{' and '.join(winners).capitalize()} earned most ({scores})."


def _leg(data: dict[str, Any]) -> str:
    pairs = ", ".join(
        f"{name} is directed by seat {team['setter']} and run by {_seats(team['runners'])}"
        for name, team in zip(TEAMS, data["teams"], strict=False)
    )
    return f"Leg {data['leg']} of {data['budget']} steps: {pairs}."


def _seats(seats: list[int]) -> str:
    return ("seat " if len(seats) == 1 else "seats ") + ", ".join(map(str, seats))


def _map(data: dict[str, Any]) -> str:
    spec = course_from(data["task"], hash=data["hash"]).spec
    return f"The setters see the map. The task (shortest plan {data['optimal']}): {spec.text}"


def _direct(data: dict[str, Any]) -> str:
    who = f"Seat {data['seat']} tells seat {data['runner']}"
    if data["goal"] is None:
        wrong = f" (what it said was no subtask: {quote(data['reason'])})" if "reason" in data else ""
        return f"{who} nothing{wrong}."
    return f"{who}: {Goal.parse(data['goal']).render()}"


def _hint(data: dict[str, Any]) -> str:
    if not data["text"]:
        return f"Seat {data['seat']} gives no hint."
    return f"Seat {data['seat']} hints {quote(data['text'])}"


def _sight(data: dict[str, Any]) -> str:
    x, y = data["at"]
    holding = ", ".join(data["holding"]) or "nothing"
    around = " / ".join(data["rows"])
    return f"Seat {data['seat']} stands at x={x}, y={y}, holding {holding}, and sees {around}"


def _legs(data: dict[str, Any]) -> str:
    told = "; ".join(
        f"{name} {_ENDS[team['end']]} after {_count(team['steps'], 'step')} and earns {team['earned']:.2f}, "
        f"steps lost: {_losses(team)}"
        for name, team in zip(TEAMS, data["teams"], strict=False)
    )
    return f"Leg {data['leg']} is over (shortest plan {data['optimal']}): {told}."


def _losses(team: dict[str, Any]) -> str:
    runners = zip(team["runners"], team["lost_running"], strict=True)
    ran = ", ".join(f"{lost} by seat {seat} running" for seat, lost in runners)
    return f"{team['lost_setting']} by seat {team['setter']} setting, {ran}"


_TALES = {
    "leg": _leg,
    "map": _map,
    "direct": _direct,
    "hint": _hint,
    "sight": _sight,
    "legs": _legs,
    "start": _start,
    "round": _round,
    "task": _task,
    "step": _step,
    "result": _result,
    "scores": _scores,
    "end": _end,
}
