"""Matches to be told: tables with every role, played by bots, and what each seat's prompter saw at each turn."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from agents.base import Bot, Seat
from agents.players import make_agent
from agents.prompting.prompter import Prompter
from agents.prompting.template import Style
from games.base import Event, State
from games.referee import Turn
from games.registry import load_game
from games.rng import derive_seed
from games.spaces import Action, Text

_WORD = re.compile(r"\w+|[^\w\s]")
ALL_SPECIAL = "merlin,percival,assassin,morgana,mordred,oberon"


class Table(NamedTuple):
    """A set-up."""

    game: str
    seats: int
    options: dict[str, Any]

    def __str__(self) -> str:
        """The id of the test."""
        return f"{self.game}-{self.seats}" + "".join(f"-{k}={v}" for k, v in self.options.items())


TABLES = (
    *(Table("avalon", n, {"lady": n >= 7}) for n in range(5, 11)),
    Table("avalon", 5, {"roles": "merlin,assassin,mordred", "lady": True}),
    Table("avalon", 5, {"roles": "none", "speech_rounds": 0}),
    Table("avalon", 6, {"roles": "merlin,percival,assassin,oberon", "speech_rounds": 2}),
    Table("avalon", 10, {"roles": ALL_SPECIAL, "lady": True}),
    *(Table("werewolf", n, {}) for n in range(5, 13)),
    Table("werewolf", 9, {"reveal": False, "roles": "werewolf=2,seer=1,doctor=1,hunter=1,witch=1"}),
    Table("werewolf", 7, {"ties": "runoff", "roles": "werewolf=2,hunter=1,witch=1", "doctor_self": False}),
    Table("werewolf", 6, {"speech_rounds": 2, "wolf_talk_rounds": 2, "doctor_repeat": True}),
    Table("kuhn", 2, {}),
)


def words(text: str) -> int:
    """Count words, numbers and punctuation marks: what a tokenizer of whole words would count."""
    return len(_WORD.findall(text))


def letters(text: str) -> int:
    """Count bytes: the most tokens that a byte-level tokenizer makes of a text."""
    return len(text.encode())


class Asked(NamedTuple):
    """One seat at one turn: its prompters have observed all that it saw, and no more."""

    state: State
    seat: Seat
    turn: Turn
    seen: list[Event]
    prompters: tuple[Prompter, ...]


def seats_of(state: State) -> list[Seat]:
    """Return the seats of a match as agents get them."""
    return [Seat(state.game, state.seats, state.options, i, derive_seed(7, i)) for i in range(state.seats)]


def play(
    table: Table,
    *,
    seed: int,
    player: str,
    styles: Sequence[tuple[Style, int]] = (),
    count: Any = words,
    speech: Any = None,
) -> Iterator[Asked]:
    """Play a match and yield each seat's turns, with a prompter for each of `styles` (style and budget).

    `player` is `random` or `scripted`; `speech`, where given, makes the texts instead: called with a generator
    and a space's bound.
    """
    state = load_game(table.game).new(seed=seed, seats=table.seats, options=table.options)
    rng = random.Random(derive_seed(seed, "play"))
    seats = seats_of(state)
    bots = [cast("Bot", make_agent(player, seat)) for seat in seats]
    told = [
        tuple(Prompter(seat, style=style, budget_tokens=budget, count=count) for style, budget in styles)
        for seat in seats
    ]
    seen: list[list[Event]] = [[] for _ in seats]
    shown = 0
    while True:
        for seat in range(state.seats):
            new = [event for event in state.history[shown:] if event.visible_to(seat)]
            seen[seat] += new
            bots[seat].observe(new)
            for prompter in told[seat]:
                prompter.observe(new)
        shown = len(state.history)
        if not (turns := state.turns()):
            return
        actions: dict[int, Action] = {}
        for seat, space in turns.items():
            turn = Turn(seat, len(state.plies), space)
            yield Asked(state, seats[seat], turn, seen[seat], told[seat])
            if speech is not None and isinstance(space, Text):
                actions[seat] = speech(rng, space.max_chars)
            else:
                action = bots[seat].decide(turn).action
                assert action is not None
                actions[seat] = action
        state.apply(actions)
