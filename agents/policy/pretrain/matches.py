"""The data: scripted bots at play, and at each of their turns the prompt a policy would get and what it should answer.

Prompts and answers are made by the code that is used in play. A quarter of the matches has random bots at some
seats: nothing is learned from them, but everyone learns what playing against them looks like. A mixture may also have
random bots that are learned from (`novices`), as written play is by people of all strengths; then it has no others.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agents.base import Bot, Seat
from agents.players import make_agent
from agents.policy.base import Message
from agents.policy.pretrain.mixture import GAMES, Mixture, Source
from agents.prompting.answers import answer_text
from agents.prompting.prompter import Prompter
from games.avalon.rules import EVIL_SEATS
from games.base import State
from games.referee import Turn
from games.registry import load_game
from games.rng import derive_seed
from games.spaces import ActionSpace, Choice

SHARES = {"avalon": 0.4, "werewolf": 0.6, "kuhn": 6.0}
"""Matches of each game for one match of the plan; a hand of Kuhn poker is over in three moves."""
KEPT = {"speak": 0.3, "vote": 0.6}
"""Share of the decisions of a label that is kept, where not all are: there are more than enough of these."""
SIZES = {
    "avalon": {5: 10, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2},
    "werewolf": {5: 2, 6: 2, 7: 2, 8: 10, 9: 2, 10: 2, 11: 2, 12: 2},
    "kuhn": {2: 1},
}
"""How often each number of seats is played; the usual size more often."""
MIXED = 0.25
"""Share of matches with random bots among the others."""


class Plan(NamedTuple):
    """One match to be played: random bots sit in `guests`, from whom nothing is learned, and in `novices`."""

    game: str
    seats: int
    options: dict[str, Any]
    seed: int
    guests: frozenset[int]
    novices: frozenset[int] = frozenset()
    whole: bool = False
    """Whether all decisions are learned from, the frequent ones too."""


class Sample(NamedTuple):
    """One decision: what was asked, and what the bot answered."""

    game: str
    label: str
    team: str
    messages: tuple[Message, ...]
    space: ActionSpace
    answer: str


def plans(matches: int, *, seed: int, mixture: Mixture | None = None) -> list[Plan]:
    """Return the matches to play, in an order that mixes the games; the same seed gives the same plans.

    Args:
        matches: of each source; or, as the embedded model has it, matches of Avalon and Werewolf together, and hands
            of Kuhn poker come on top, six for each.
        seed: of everything in the plans.
        mixture: what is learned from; task worlds are passed over (`agents.policy.pretrain.attempts`).
    """
    rng = random.Random(derive_seed(seed, "plans"))
    mixture = mixture or Mixture()
    if mixture.sources:
        counts = [(source, matches) for source in mixture.sources if source.name in GAMES]
    else:
        counts = [(Source(game), max(round(matches * SHARES[game]), 1)) for game in GAMES]
    made = [
        _plan(source, rng, derive_seed(seed, source.name, i), mixture)
        for source, count in counts
        for i in range(count)
    ]
    rng.shuffle(made)
    return made


def _plan(source: Source, rng: random.Random, seed: int, mixture: Mixture) -> Plan:
    game, seats, options = source.name, source.seats, dict(mixture.options)
    if seats is None:
        sizes = SIZES[game]
        seats = rng.choices(list(sizes), list(sizes.values()))[0]
        options = _OPTIONS[game](seats, rng)
    guests: frozenset[int] = frozenset()
    if not mixture.random and rng.random() < MIXED:
        guests = frozenset(rng.sample(range(seats), rng.randint(1, seats - 1)))
    chance = random.Random(derive_seed(seed, "novices"))
    novices = frozenset(seat for seat in range(seats) if chance.random() < mixture.random)
    return Plan(game, seats, options, seed, guests, novices, whole=source.seats is not None)


def _avalon(seats: int, rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {"lady": rng.random() < 0.2}
    if rng.random() < 0.4:
        evil = rng.sample(["morgana", "mordred", "oberon"], rng.randint(0, min(EVIL_SEATS[seats] - 1, 3)))
        roles = ["merlin", "assassin", *evil] if rng.random() < 0.85 else evil
        if "merlin" in roles and rng.random() < 0.6:
            roles.append("percival")
        options["roles"] = roles
    options["speech_rounds"] = rng.choices((0, 1, 2), (1, 18, 1))[0]
    return options


def _werewolf(seats: int, rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "reveal": rng.random() < 0.9,
        "ties": "runoff" if rng.random() < 0.1 else "none",
        "speech_rounds": rng.choices((0, 1, 2), (1, 18, 1))[0],
    }
    if rng.random() < 0.25:
        specials = [role for role in ("seer", "doctor", "hunter", "witch") if rng.random() < 0.6]
        room = seats - len(specials)
        wolves = rng.randint(1, max(1, min((seats - 1) // 2, room, 4)))
        options["roles"] = {"werewolf": wolves, **dict.fromkeys(specials, 1)}
    return options


_OPTIONS: dict[str, Callable[[int, random.Random], dict[str, Any]]] = {
    "avalon": _avalon,
    "werewolf": _werewolf,
    "kuhn": lambda seats, rng: {},
}


def play(plan: Plan, *, budget_tokens: int, count: Callable[[str], int]) -> Iterator[Sample]:
    """Play a match and yield the decisions, but for the guests', those without a choice and many of the frequent ones.

    Args:
        plan: the match.
        budget_tokens: of a prompt, as in play.
        count: tokens of a text.
    """
    game = load_game(plan.game)
    state: State = game.new(seed=plan.seed, seats=plan.seats, options=plan.options)
    teams = state.teams()
    bots: list[Bot] = []
    prompters: list[Prompter] = []
    for index in range(plan.seats):
        seat = Seat(game, plan.seats, state.options, index, derive_seed(plan.seed, "seat", index))
        guessing = index in plan.guests or index in plan.novices
        bot = make_agent("random" if guessing else "scripted", seat)
        assert isinstance(bot, Bot)
        bots.append(bot)
        prompters.append(Prompter(seat, style="compact", budget_tokens=budget_tokens, count=count))
    rng = random.Random(derive_seed(plan.seed, "kept"))
    new, ply = list(state.history), 0
    while True:
        for index, bot in enumerate(bots):
            seen = [event for event in new if event.visible_to(index)]
            bot.observe(seen)
            prompters[index].observe(seen)
        turns = state.turns()
        if not turns:
            return
        actions = {}
        for index, space in turns.items():
            turn = Turn(index, ply, space)
            action = bots[index].decide(turn).action
            assert action is not None, "a bot always decides"
            actions[index] = action
            forced = isinstance(space, Choice) and len(space.options) == 1
            kept = 1.0 if plan.whole else KEPT.get(space.label, 1.0)
            if index not in plan.guests and not forced and rng.random() < kept:
                messages = prompters[index].messages(turn, want="action")
                yield Sample(
                    plan.game, space.label, teams[index], messages, space, answer_text(space, action)
                )
        new = state.apply(actions)
        ply += 1
