"""Labels by the rules: what a good decision is, given the truth known after the match; sided, and stated per game.

Kuhn poker. A move that dominates its alternative is good, a dominated one is bad: calling with the king, folding the
jack, betting the king last in turn. The rest is neutral: whether to bluff is no matter of one hand.

Avalon. For good: proposing or approving a team without evil, rejecting one with evil. For evil: proposing or
approving a team with evil enough to fail the quest, rejecting one without. The opposite is bad. At the fifth
proposal approving is what saves good, whoever is on the team, and rejecting wins for evil. A fail that failed the
quest is good, one that was too few is bad; a success that let good win its third quest is bad. Naming Merlin at the
end is good, naming somebody else bad. Good's finding an enemy through the Lady is good.

Werewolf. For the village: voting for, shooting or poisoning a wolf is good, one of its own bad. For the wolves the
opposite vote. The seer's finding a wolf is good, looking twice at a seat bad; guarding or healing whom the wolves
attacked is good, healing whom the doctor had guarded bad; a wolf's naming seer, doctor or witch is good, the
hunter bad.

Forge. A step that brings the goal nearer by the shortest way known is good; one that leads away, makes it
unreachable or only waits is bad. Setting a task that earned at least half of what a task can earn is good, an invalid
one or one that earned less than a quarter bad. A relay's subtask is good where its team ended it nearer the goal, bad
where it did not.

Words are neutral everywhere: what they did is not the world's to say. So is whatever was forced or without a choice.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from agents.bots.forge_routes import steps_left
from agents.credit.adca import BAD, GOOD, NEUTRAL
from agents.credit.labels import SeatLabels, StepLabel, by_ply, check_seats, events_of, free
from agents.credit.line import Line, Taken, read_line
from agents.errors import BadLabels
from games.avalon import rules as avalon
from games.kuhn import CALL, CARDS
from games.kuhn import FOLD as KUHN_FOLD
from games.tasks.forge_course import Course, Node, course_of
from games.tasks.forge_setup import ATTEMPT, DIRECT, DONE, RELAY, RUN, SET
from games.tasks.goals import BROKEN
from games.tasks.spec import TaskSpec
from games.tasks.world import WAIT
from games.werewolf import setup as werewolf
from replays.record import Record

VERSION = "1"
Said = tuple[int, str]
"""A label's value and why."""

NOTHING: Said = (NEUTRAL, "")
EARNS_WELL, EARNS_BADLY = 0.5, 0.25
"""Of what a set task can earn at most, 1."""


class RulesLabeller:
    """Labels decisions by the rules above."""

    name = "rules"
    version = f"rules {VERSION}"

    async def label(self, record: Record, *, seats: Collection[int]) -> dict[int, SeatLabels]:
        """Return the labels. Raises `BadCredit` or `BadLabels`."""
        return label_by_rules(read_line(record), seats)


def knows(game: str) -> bool:
    """Whether there are rules of what is good for a game."""
    return game in _JUDGES


def label_by_rules(line: Line, seats: Collection[int]) -> dict[int, SeatLabels]:
    """Return the rules' labels of every decision of `seats` in a match that was simulated again.

    Raises `BadCredit` for a seat that there is not, and `BadLabels` for a game without rules of this kind.
    """
    judge = _JUDGES.get(line.game.name)
    if judge is None:
        raise BadLabels(
            f"labels rules: nothing is known of good decisions in {line.game.name}, games are "
            f"{', '.join(sorted(_JUDGES))}; ask a model (model)"
        )
    found: dict[int, list[StepLabel]] = {seat: [] for seat in check_seats(line, seats)}
    for decision, (value, why) in judge(line):
        if decision.seat in found:
            said = (value, why) if free(decision) else NOTHING
            found[decision.seat].append(StepLabel(decision.ply, decision.seat, *said))
    return {seat: SeatLabels(seat, tuple(sorted(steps))) for seat, steps in found.items()}


Judged = Iterator[tuple[Taken, Said]]


def _states(line: Line) -> Iterator[tuple[Any, list[Taken]]]:
    """Yield the state before each ply, as its game knows it, and what was decided in it."""
    return zip(line.states, by_ply(line), strict=True)


def _one_by_one(say: Callable[[Any, Taken, Line], Said]) -> Callable[[Line], Judged]:
    """Return a judge that judges each decision by the state before it alone."""

    def judge(line: Line) -> Judged:
        for state, decisions in _states(line):
            for decision in decisions:
                yield decision, say(state, decision, line)

    return judge


def _good(holds: bool, why: str, other: str) -> Said:
    return (GOOD, why) if holds else (BAD, other)


# Kuhn poker


def _kuhn(state: Any, decision: Taken, line: Line) -> Said:
    card = CARDS[state.cards[decision.seat]]
    if decision.space.contains(CALL):
        if card == "king":
            return _good(decision.action == CALL, "called with the king", "folded the king")
        if card == "jack":
            return _good(decision.action == KUHN_FOLD, "folded the jack", "called with the jack")
    elif state.line and card == "king":
        return _good(decision.action == "bet", "bet the king last", "checked the king last")
    return NOTHING


# Avalon


def _avalon(state: Any, decision: Taken, line: Line) -> Said:
    good = state.side_of[decision.seat] == avalon.GOOD
    match state.phase:
        case "propose":
            team = tuple(map(int, decision.action))
            return _team(state, team, good=good, verb="proposed")
        case "vote":
            return _vote(state, decision.action == avalon.APPROVE, good=good)
        case "quest":
            return _card(state, decision, line)
        case "lady":
            other = (state.side_of[int(str(decision.action))] == avalon.GOOD) != good
            return (GOOD, "found an enemy") if other and good else NOTHING
        case "assassinate":
            found = state.role_of[int(str(decision.action))] == avalon.MERLIN
            return _good(found, "named Merlin", "missed Merlin")
    return NOTHING


def _tainted(state: Any, team: Sequence[int]) -> int:
    return sum(state.side_of[seat] == avalon.EVIL for seat in team)


def _team(state: Any, team: Sequence[int], *, good: bool, verb: str) -> Said:
    evil = _tainted(state, team)
    if good:
        return _good(not evil, f"{verb} a clean team", f"{verb} a team with evil")
    enough = evil >= state._fails_needed(state.quest)
    return _good(enough, f"{verb} a team that evil can fail", f"{verb} a team that evil cannot fail")


def _vote(state: Any, approved: bool, *, good: bool) -> Said:
    if state.attempt == avalon.MAX_REJECTIONS:
        if good:
            return _good(approved, "kept the fifth proposal", "rejected the fifth proposal")
        if not approved:
            return GOOD, "rejected the fifth proposal"
        return NOTHING if _tainted(state, state.team) else (BAD, "approved a clean fifth proposal")
    value, why = _team(state, state.team, good=good, verb="approved" if approved else "rejected")
    return value if approved else -value, why


def _card(state: Any, decision: Taken, line: Line) -> Said:
    if state.side_of[decision.seat] == avalon.GOOD:
        return NOTHING
    cards = line.final.plies[decision.ply]
    fails = sum(card == avalon.FAIL for card in cards.values())
    needed = state._fails_needed(state.quest)
    if decision.action == avalon.FAIL:
        if fails == needed:
            return GOOD, "failed the quest"
        return NOTHING if fails > needed else (BAD, "failed too little and was seen")
    won = sum(result[3] for result in state.results)
    if fails < needed and won == avalon.TO_WIN - 1:
        return BAD, "let good win its third quest"
    return NOTHING


# Werewolf


def _werewolf(line: Line) -> Judged:
    looked: set[int] = set()
    for ply, (state, decisions) in enumerate(_states(line)):
        attacked = None
        if state.phase == werewolf.NIGHT:
            events = events_of(line, ply)
            attacked = next((event.data["at"] for event in events if event.kind == "wolf_target"), None)
        for decision in decisions:
            if decision.space.label == "see":
                at = int(str(decision.action))
                if at in looked:
                    yield decision, (BAD, "looked at a seat again")
                    continue
                looked.add(at)
                wolf = bool(state.wolves >> at & 1)
                yield decision, ((GOOD, "found a wolf") if wolf else NOTHING)
            elif decision.space.label == "protect":
                saved = int(str(decision.action)) == attacked
                yield decision, ((GOOD, "guarded the attacked") if saved else NOTHING)
            else:
                yield decision, _deed(state, decision)


def _deed(state: Any, decision: Taken) -> Said:
    action = str(decision.action)
    match decision.space.label:
        case "wolf_target":
            role = state.role_of[int(action)]
            if role in (werewolf.SEER, werewolf.DOCTOR, werewolf.WITCH):
                return GOOD, f"went for the {role}"
            return (BAD, "went for the hunter") if role == werewolf.HUNTER else NOTHING
        case "potion":
            use, _, at = action.partition(" ")
            if use == werewolf.HEAL:
                wasted = state.protected == state.target
                return _good(not wasted, "healed the attacked", "healed whom the doctor had guarded")
            if use == werewolf.POISON:
                return _hit(state, int(at), village=True, verb="poisoned")
        case "vote" | "shoot":
            if action in (werewolf.ABSTAIN, werewolf.NONE):
                return NOTHING
            village = state.team_of[decision.seat] == werewolf.VILLAGE
            verb = "voted for" if decision.space.label == werewolf.VOTE else "shot"
            return _hit(state, int(action), village=village, verb=verb)
    return NOTHING


def _hit(state: Any, at: int, *, village: bool, verb: str) -> Said:
    wolf = state.team_of[at] == werewolf.WOLVES
    words = f"{verb} {'a wolf' if wolf else 'a villager'}"
    return _good(wolf == village, words, words)


# Forge, and attempts at tasks


def attempt_labels(spec: TaskSpec, actions: Sequence[str]) -> list[int]:
    """Return the rules' label of each step of an attempt at a task (see Forge, above).

    Raises `BadLabels` for a task that cannot be solved within its budget, or is solved before the first step.
    """
    course = course_of(spec)
    if course is None:
        raise BadLabels(
            "labels rules: the task cannot be solved within its budget, so no step brings it nearer"
        )
    node, labels = course.start, []
    for taken, action in enumerate(actions):
        if node.space is None:
            labels.append(NEUTRAL)
            continue
        labels.append(_step(course, node, action, taken=taken)[0])
        node = course.step(node, action)
    return labels


def _step(course: Course, node: Node, action: str, *, taken: int) -> Said:
    """Judge a step from `node` after `taken` steps of the attempt."""
    before = steps_left(course, node)
    if before is None or taken + before > course.spec.budget:
        return NOTHING  # it was hopeless already, as far as is known
    after_node = course.step(node, action)
    if after_node.solved:
        return GOOD, "solved the task"
    if after_node.status == BROKEN:
        return BAD, "made the goal unreachable"
    after = steps_left(course, after_node)
    if after is None:
        return NOTHING
    if after < before:
        return GOOD, f"{after} steps left"
    if after > before:
        return BAD, f"led away, {after} steps left"
    return (BAD, "waited") if action == WAIT else NOTHING


def _forge(line: Line) -> Judged:
    return _relay(line) if line.final.options.mode == RELAY else _table(line)


def _table(line: Line) -> Judged:
    setting: list[tuple[int, Taken]] = []
    earned: dict[tuple[int, int], float] = {}
    for ply, (state, decisions) in enumerate(_states(line)):
        for decision in decisions:
            if state.phase == SET:
                setting.append((state.round, decision))
            elif state.phase == ATTEMPT:
                run = state.runs[decision.seat]
                course = state.tasks[state.queues[decision.seat][run.place]]
                yield decision, _step(course, run.node, str(decision.action), taken=len(run.trail))
        for event in events_of(line, ply):
            if event.kind == "result":
                earned[state.round, event.data["seat"]] = event.data["earned"]
    for round_number, decision in setting:
        worth = earned[round_number, decision.seat]
        if worth >= EARNS_WELL:
            yield decision, (GOOD, f"its task earned {worth:.2f}")
        elif worth < EARNS_BADLY:
            yield decision, (BAD, f"its task earned {worth:.2f}")
        else:
            yield decision, NOTHING


def _relay(line: Line) -> Judged:
    named: dict[int, tuple[Taken, int | None]] = {}
    """By team, the subtask at hand and how far the goal was when it was named."""
    for state, decisions in _states(line):
        for decision in decisions:
            number = decision.seat % 2
            team = state.pair[number]
            if team.stage == DIRECT:
                if number in named:
                    yield _subtask(*named.pop(number), left=steps_left(state.course, team.node))
                named[number] = decision, steps_left(state.course, team.node)
            elif team.stage == RUN:
                yield (
                    decision,
                    _step(state.course, team.node, str(decision.action), taken=len(team.trail)),
                )
                after = state.course.step(team.node, str(decision.action))
                ends = after.solved or after.status == BROKEN
                ends = ends or len(team.trail) + 1 >= state.course.spec.budget
                if ends and number in named:
                    yield _subtask(*named.pop(number), left=steps_left(state.course, after))
            elif team.stage != DONE:
                yield decision, NOTHING


def _subtask(decision: Taken, before: int | None, *, left: int | None) -> tuple[Taken, Said]:
    if before is None:
        return decision, NOTHING
    nearer = left is not None and left < before
    return decision, _good(nearer, "ended nearer the goal", "ended no nearer the goal")


_JUDGES: dict[str, Callable[[Line], Judged]] = {
    "kuhn": _one_by_one(_kuhn),
    "avalon": _one_by_one(_avalon),
    "werewolf": _werewolf,
    "forge": _forge,
}
