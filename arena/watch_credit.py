"""Credit for the spectator, as plain data: computed here, or read from what `arena credit --json` printed."""

import json
from pathlib import Path
from typing import Any

from agents.credit.base import METHODS
from agents.credit.line import read_line
from agents.errors import BadCredit
from agents.policy.settings import PolicySettings
from arena.credit import CreditRequest, credit_one
from replays.reader import read_record

MAX_BYTES = 64 * 2**20


def credit_data(asked: str, path: Path, *, policy: PolicySettings, home: Path) -> Any:
    """Return the credit of every team of a record, as decoded JSON.

    Args:
        asked: a method of `arena credit`, or a file of JSON that it printed.
        path: the record.
        policy, home: of the engines of language models.

    Raises `BadCredit` where `asked` is neither, and as the method does.
    """
    if asked in METHODS:
        line = read_line(read_record(path))
        return [
            credit_one(path, CreditRequest(method=asked, team=team, policy=policy, home=home)).as_dict()
            for team in line.team_names
        ]
    file = Path(asked)
    try:
        known = file.is_file()
    except OSError:  # no name of a file
        known = False
    if not known:
        raise BadCredit(
            f"credit: got {asked[:80]!r}, allowed are {', '.join(METHODS)}, or a file that `arena credit --json` wrote"
        )
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        return json.loads(raw)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)[:80]
        raise BadCredit(f"{file}: no credit can be read from it ({reason})") from None
