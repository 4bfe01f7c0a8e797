"""What an Avalon speech claims, read from the words that the scripted player uses and others may."""

import re
from functools import lru_cache
from typing import NamedTuple

from games.avalon.rules import EVIL


class Claims(NamedTuple):
    """What a speech claims: whom the speaker suspects and trusts, and what the Lady of the Lake showed."""

    suspects: tuple[int, ...] = ()
    trusts: tuple[int, ...] = ()
    lady: tuple[tuple[int, bool], ...] = ()
    """Pairs of an examined seat and whether it is said to be evil."""


_SEATS = r"((?:seats? )?\d{1,2}(?:(?:, | and |, and )(?:seats? )?\d{1,2}){0,9})"
_OPINION = re.compile(rf"\b(?:(not|don't|never) )?(trust|suspect) {_SEATS}", re.IGNORECASE | re.ASCII)
_LADY = re.compile(r"\bexamined (?:seat )?(\d{1,2}): (good|evil)\b", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)


@lru_cache(maxsize=4096)
def parse_claims(text: str, speaker: int, seats: int) -> Claims:
    """Return the claims in a speech; seats that do not exist and the speaker's own are left out."""
    opinion: dict[int, bool] = {}
    for negated, verb, listed in _OPINION.findall(text):
        suspected = (verb.lower() == "suspect") != bool(negated)
        for number in map(int, _NUMBER.findall(listed)):
            if number < seats and number != speaker:
                opinion[number] = suspected
    lady = {int(s): side.lower() == EVIL for s, side in _LADY.findall(text) if int(s) < seats}
    lady.pop(speaker, None)
    return Claims(
        tuple(sorted(s for s, suspected in opinion.items() if suspected)),
        tuple(sorted(s for s, suspected in opinion.items() if not suspected)),
        tuple(sorted(lady.items())),
    )
