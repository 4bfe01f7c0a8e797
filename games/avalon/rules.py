"""The tables and options of Avalon: sides, sizes, decks, who is shown whom.

Source: Don Eskridge, "The Resistance: Avalon", rulebook (Indie Boards & Cards, 2012).
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from games.base import GameOptions

GOOD, EVIL = "good", "evil"
MERLIN, PERCIVAL, SERVANT = "merlin", "percival", "servant"
ASSASSIN, MORGANA, MORDRED, OBERON, MINION = "assassin", "morgana", "mordred", "oberon", "minion"
SIDES = {
    MERLIN: GOOD,
    PERCIVAL: GOOD,
    SERVANT: GOOD,
    ASSASSIN: EVIL,
    MORGANA: EVIL,
    MORDRED: EVIL,
    OBERON: EVIL,
    MINION: EVIL,
}
SPECIAL_ROLES = (MERLIN, PERCIVAL, ASSASSIN, MORGANA, MORDRED, OBERON)

EVIL_SEATS = {5: 2, 6: 2, 7: 3, 8: 3, 9: 3, 10: 4}
TEAM_SIZES = {
    5: (2, 3, 2, 3, 3),
    6: (2, 3, 4, 3, 4),
    7: (2, 3, 3, 4, 4),
    8: (3, 4, 4, 5, 5),
    9: (3, 4, 4, 5, 5),
    10: (3, 4, 4, 5, 5),
}
TWO_FAILS_FROM = 7
"""From so many seats on the fourth quest fails only with two fails."""
MAX_REJECTIONS = 5
TO_WIN = 3
LADY_AFTER = (2, 3, 4)

_SMALL = (MERLIN, PERCIVAL, ASSASSIN, MORGANA)
CUSTOMARY = {
    5: _SMALL,
    6: _SMALL,
    7: (*_SMALL, MORDRED),
    8: (*_SMALL, MORDRED),
    9: (*_SMALL, MORDRED),
    10: (*_SMALL, MORDRED, OBERON),
}
"""The special roles where the option `roles` is not given."""

APPROVE, REJECT = "approve", "reject"
SUCCESS, FAIL = "success", "fail"

SPEAK, PROPOSE, VOTING, QUEST, LADY = "speak", "propose", "vote", "quest", "lady"
CONFER, ASSASSINATE, OVER = "confer", "assassinate", "over"

RULES = """\
# The Resistance: Avalon

5 to 10 seats, numbered from 0. Most serve good, a minority is evil and knows it. Good wants three quests to
succeed, evil wants three to fail, or to find Merlin at the end.

| seats | evil | team sizes, quests 1 to 5 |
|---|---|---|
| 5 | 2 | 2 3 2 3 3 |
| 6 | 2 | 2 3 4 3 4 |
| 7 | 3 | 2 3 3 4 4 |
| 8, 9 | 3 | 3 4 4 5 5 |
| 10 | 4 | 3 4 4 5 5 |

## Roles

Good: merlin, percival, servant. Evil: assassin, morgana, mordred, oberon, minion. Which special roles are in
play is known to all; servants and minions fill the other seats.

- Evil seats know each other, except oberon, who knows nobody and is known to nobody.
- Merlin sees the evil seats, except mordred.
- Percival sees merlin and morgana, without knowing which is which.

Unless the option `roles` says otherwise: merlin, percival, assassin and morgana with 5 and 6 seats, mordred
as well with 7 to 9, mordred and oberon as well with 10.

## A quest

1. The first leader is drawn among all seats.
2. Discussion: from the leader on, in seat order, each seat speaks (as many rounds as the option
   `speech_rounds` says).
3. The leader proposes a team of exactly the quest's size; the leader need not be on it.
4. All vote secretly; the votes are revealed together. More than half approving sends the team, a tie does
   not. Either way the next seat becomes leader. The fifth proposal in a row rejected on one quest ends the
   match: evil wins.
5. Each member of the team secretly plays success or fail. Good plays success always. Only the number of
   fails becomes known. One fail fails the quest; with 7 or more seats the fourth quest takes two.

Three failed quests: evil wins. Three successes: good wins if merlin is not in play. Otherwise the evil seats
learn who they are (oberon too) and who is the assassin, each says a word that only they hear, and the
assassin names a good seat. If that is merlin evil wins, else good does.

## Lady of the Lake (option `lady`; the rulebook advises it from 7 seats on)

The seat to the right of the first leader holds her first. After the second, third and fourth quest the holder
examines a seat that has never held her and learns its side, alone. She then passes to the examined seat.

## Answers

A seat that gives no legal answer is silent, proposes itself and the seats after it, approves, plays
success, and otherwise takes the first option.

The return is +1 for each seat of the winning side and -1 for the others.

Source: Don Eskridge, "The Resistance: Avalon", rulebook.
"""


def _read_roles(value: object) -> object:
    """Understand comma text; refuse unknown and repeated roles in one line."""
    if value is None:
        return None
    if isinstance(value, str):
        value = [] if value.strip().lower() in ("", "none") else value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(role, str) for role in value):
        raise ValueError(f"a list of roles or comma text is needed, roles are {', '.join(SPECIAL_ROLES)}")
    roles = tuple(role.strip().lower() for role in value)
    for i, role in enumerate(roles):
        if role not in SPECIAL_ROLES:
            allowed = ", ".join(SPECIAL_ROLES)
            raise ValueError(f"unknown role {role[:40]!r}, allowed are {allowed} (or none)")
        if role in roles[:i]:
            raise ValueError(f"role {role!r} is repeated, each may be named once")
    return tuple(sorted(roles, key=SPECIAL_ROLES.index))


class AvalonOptions(GameOptions):
    """Options of Avalon."""

    roles: Annotated[tuple[str, ...] | None, BeforeValidator(_read_roles)] = Field(
        None, description="special roles in play, comma-separated, or none; the customary ones when not given"
    )
    speech_rounds: int = Field(1, ge=0, le=3, description="rounds of speech before each proposal")
    max_speech_chars: int = Field(300, ge=1, le=5000, description="longest speech, in characters")
    lady: bool = Field(False, description="whether the Lady of the Lake is in play")


def make_deck(seats: int, special: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the roles in play, one for each seat; `special` None means the customary ones."""
    chosen = CUSTOMARY[seats] if special is None else tuple(special)
    evil = [role for role in chosen if SIDES[role] == EVIL]
    good = [role for role in chosen if SIDES[role] == GOOD]
    evil += [MINION] * (EVIL_SEATS[seats] - len(evil))
    good += [SERVANT] * (seats - EVIL_SEATS[seats] - len(good))
    return (*good, *evil)


def sighting(roles: Sequence[str], seat: int) -> tuple[int, ...]:
    """Return the seats that `seat` is shown at the start, in seat order."""
    own = roles[seat]
    if own == MERLIN:
        return tuple(s for s, role in enumerate(roles) if SIDES[role] == EVIL and role != MORDRED)
    if own == PERCIVAL:
        return tuple(s for s, role in enumerate(roles) if role in (MERLIN, MORGANA))
    if SIDES[own] == EVIL and own != OBERON:
        return tuple(s for s, r in enumerate(roles) if SIDES[r] == EVIL and r != OBERON and s != seat)
    return ()
