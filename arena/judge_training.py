"""Training a judge of decisions from records: credit each match by replays, and learn from what they say.

A decision is replayed with the reference playing on from it, and with the reference playing on after it, both times
with the same seeds: what is learned from is the difference, which holds nothing of how the match happened to end.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from agents.credit.counterfactual import LeaveOneOut
from agents.credit.learned import DEFAULT_MARGIN, Example, LearnedJudge, examples, train
from agents.credit.line import read_line
from agents.errors import BadCredit, CreditError
from arena.credit import usual_reference
from replays.errors import RecordError
from replays.reader import read_record
from replays.record import SUFFIX


def records_in(paths: Iterable[Path]) -> list[Path]:
    """Return the records that are named, and those in the directories that are named, in order."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


async def train_judge(
    paths: Sequence[Path],
    *,
    margin: float = DEFAULT_MARGIN,
    seed: int = 0,
    reference: str | None = None,
    told: Callable[[int, int], None] = lambda done, planned: None,
    **settings: Any,
) -> LearnedJudge:
    """Return a judge trained on the decisions of some matches of one game.

    Args:
        paths: of the records; such as give no credit (cut short, damaged, of other rules) are left out and counted.
        margin: how far from one half a probability must be to be a label.
        seed: of the replays and of the folds on which the judge is tried.
        reference: spec of the bot whose decisions stand in for a seat's; None is the game's `scripted`, or `random`.
        told: called after each match with how many are done and planned.
        settings: others of `LeaveOneOut`, by which decisions are credited.

    Raises `BadCredit` where there is too little to learn from, records are of several games, or a reference or setting
    is none.
    """
    method: LeaveOneOut | None = None
    found: list[Example] = []
    left_out: Counter[str] = Counter()
    game = ""
    for done, path in enumerate(paths, start=1):
        try:
            record = read_record(path)
            if game and record.header.game != game:
                raise BadCredit(
                    f"judge: got records of {game} and of {record.header.game}; a judge knows one game"
                )
            line = await asyncio.to_thread(read_line, record)
            if method is None:
                stand = reference or usual_reference(record.header.game)
                method = LeaveOneOut(
                    least=1, most=1, play_on="reference", reference=stand, seed=seed, **settings
                )
            credits = [await method.credit_line(line, team=team) for team in line.team_names]
            game = record.header.game
            found += await asyncio.to_thread(examples, record, credits)
        except BadCredit:  # what was asked for cannot be, whatever the record
            raise
        except (CreditError, RecordError) as error:
            left_out[error.code] += 1
        told(done, len(paths))
    if method is None:
        raise BadCredit(f"judge: none of {len(paths)} records gives credit ({dict(left_out)})")
    used = method.settings
    provenance = {
        "method": f"{method.name} of single decisions",
        "reference": used.reference,
        "stand_in": used.stand_in,
        "replicates": used.step_replicates,
        "play_on": used.play_on,
        "hidden": used.hidden,
        "replay_seed": seed,
        "records": len(paths),
        "left_out": dict(sorted(left_out.items())),
    }
    return await asyncio.to_thread(train, found, game=game, provenance=provenance, margin=margin, seed=seed)
