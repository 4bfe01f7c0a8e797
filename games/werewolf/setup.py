"""Werewolf's roles, its options, and which roles a table of a given size gets."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, field_validator

from games.base import GameOptions
from games.errors import BadOption

VILLAGER, WEREWOLF, SEER, DOCTOR, HUNTER, WITCH = ROLES = (
    "villager",
    "werewolf",
    "seer",
    "doctor",
    "hunter",
    "witch",
)
SPECIALS = (SEER, DOCTOR, HUNTER, WITCH)
VILLAGE, WOLVES = TEAMS = ("village", "wolves")

ABSTAIN, NONE, HEAL, POISON = "abstain", "none", "heal", "poison"

WOLF_TALK, NIGHT, POTION, SPEAK, VOTE, LAST_WORDS, SHOOT, OVER = (
    "wolf_talk",
    "night",
    "potion",
    "speak",
    "vote",
    "last_words",
    "shoot",
    "over",
)
"""Phases: what the open turns are about. In `NIGHT` wolves, seer and doctor act at once."""

WOLVES_DEAD, WOLF_PARITY, TURN_LIMIT = "wolves_dead", "wolf_parity", "turn_limit"
"""Reasons of the end."""

DEFAULT_MIX: dict[int, dict[str, int]] = {
    5: {WEREWOLF: 1, SEER: 1, DOCTOR: 1},
    6: {WEREWOLF: 2, SEER: 1, DOCTOR: 1},
    7: {WEREWOLF: 2, SEER: 1, DOCTOR: 1},
    8: {WEREWOLF: 2, SEER: 1, DOCTOR: 1, HUNTER: 1},
    9: {WEREWOLF: 3, SEER: 1, DOCTOR: 1, HUNTER: 1},
    10: {WEREWOLF: 3, SEER: 1, DOCTOR: 1, HUNTER: 1},
    11: {WEREWOLF: 4, SEER: 1, DOCTOR: 1, HUNTER: 1, WITCH: 1},
    12: {WEREWOLF: 4, SEER: 1, DOCTOR: 1, HUNTER: 1, WITCH: 1},
}
"""Roles by number of seats where the options name none; the other seats are villagers."""


class WerewolfOptions(GameOptions):
    """Options of Werewolf; see the rules for what each one does."""

    roles: dict[str, int] | None = Field(
        None, description="role mix, as werewolf=2,seer=1; unnamed seats are villagers; none: by size"
    )
    reveal: bool = Field(True, description="whether the role of a dead seat is made public")
    speech_rounds: int = Field(1, ge=0, le=5, description="speeches of each living seat in a day")
    wolf_talk_rounds: int = Field(1, ge=0, le=5, description="rounds of wolves' talk in a night")
    max_speech_chars: int = Field(300, ge=1, le=10_000, description="characters in one speech")
    max_days: int | None = Field(
        None, ge=1, le=100, description="the day after which the match is drawn; none: as many as seats"
    )
    ties: Literal["none", "runoff"] = Field(
        "none", description="a tied vote: nobody dies, or one second vote among the tied"
    )
    doctor_self: bool = Field(True, description="whether the doctor may protect himself")
    doctor_repeat: bool = Field(
        False, description="whether the doctor may protect the same seat two nights in a row"
    )

    @field_validator("roles", mode="before")
    @classmethod
    def _read_roles(cls, value: Any) -> dict[str, int] | None:
        if value is None or value == "":
            return None
        pairs: list[tuple[Any, Any]] = []
        if isinstance(value, str):
            for part in value.split(","):
                name, _, count = part.partition("=")
                pairs.append((name.strip(), count.strip()))
        elif isinstance(value, Mapping):
            pairs.extend(value.items())
        else:
            raise ValueError("write a mapping or ROLE=COUNT,ROLE=COUNT")
        counts: dict[str, int] = {}
        for name, count in pairs:
            if name not in ROLES:
                raise ValueError(f"no role is called {str(name)[:40]!r}, roles are {', '.join(ROLES)}")
            if name in counts:
                raise ValueError(f"{name} is named twice")
            counts[name] = _count(name, count)
        return {role: counts[role] for role in ROLES if role in counts}


def _count(name: str, count: Any) -> int:
    if isinstance(count, str) and count.isascii() and count.isdigit():
        count = int(count[:9])
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 12:
        raise ValueError(f"{name} needs a count from 0 to 12, as in {name}=1")
    return count


def role_mix(seats: int, options: WerewolfOptions) -> dict[str, int]:
    """Return how many seats hold each role, roles without a seat left out.

    Raises `BadOption` where the mix breaks a rule of the set-up.
    """
    named = DEFAULT_MIX[seats] if options.roles is None else options.roles
    return dict(_mix(seats, tuple(named.items())))


@lru_cache(maxsize=256)
def _mix(seats: int, named: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    counts = dict(named)
    wolves, total = counts.get(WEREWOLF, 0), sum(counts.values())
    if wolves < 1:
        raise BadOption("werewolf option roles: got no werewolf, at least 1 is needed")
    if 2 * wolves >= seats:
        allowed = (seats - 1) // 2
        raise BadOption(
            f"werewolf option roles: got {wolves} werewolves among {seats} seats, "
            f"fewer than half are allowed, so at most {allowed}"
        )
    for role in SPECIALS:
        if counts.get(role, 0) > 1:
            raise BadOption(f"werewolf option roles: got {counts[role]} of {role}, at most 1 is allowed")
    if total > seats:
        raise BadOption(f"werewolf option roles: got {total} roles, there are {seats} seats")
    if VILLAGER in counts and total < seats:
        raise BadOption(
            f"werewolf option roles: got {total} roles for {seats} seats, "
            f"name {counts[VILLAGER] + seats - total} villagers or leave them out"
        )
    counts[VILLAGER] = counts.get(VILLAGER, 0) + seats - total
    return tuple((role, counts[role]) for role in ROLES if counts.get(role))


def max_days(seats: int, options: WerewolfOptions) -> int:
    """Return the day after which the match is drawn."""
    return seats if options.max_days is None else options.max_days


@lru_cache(maxsize=256)
def _deck(mix: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    return tuple(role for role, count in mix for _ in range(count))


def deck(seats: int, options: WerewolfOptions) -> tuple[str, ...]:
    """Return the role cards in the order in which the deal's shuffle numbers them."""
    return _deck(tuple(role_mix(seats, options).items()))
