"""What should wake somebody: success collapses, duplicates pile up, the judge disagrees with itself, advice hurts, a
proposer's tasks come to nothing. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.curriculum.config import Alarms
from agents.curriculum.metrics import Share
from agents.curriculum.rows import AttemptRow
from agents.memory.usefulness import Arms, gain

REPEATS = ("duplicate", "similar")
ACCEPTED = 0.1
"""A proposer of whose tasks surely fewer are taken is no use."""
RETRIEVAL_Z = 2.878
"""Standard errors (one-sided 0.2 %) by which advice must hurt: the alert looks again and again."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that is wrong: its kind, and one line with the figure and its bound."""

    kind: str
    """`collapse`, `duplicates`, `disagreement`, `retrieval` or `proposer`."""
    text: str
    value: float
    bound: float

    def to_data(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        return {"kind": self.kind, "text": self.text, "value": self.value, "bound": self.bound}


def collapse(rows: Sequence[AttemptRow], alarms: Alarms) -> Alert | None:
    """Return an alert if success at the last training attempts is surely (95 %) below the bound."""
    latest = [row for row in rows if row.purpose == "train"][-alarms.window :]
    share = Share.of(latest)
    if len(latest) < alarms.window or share.interval is None or share.interval[1] >= alarms.collapse:
        return None
    value = share.successes / share.attempts
    text = f"success collapsed: {share.successes} of the last {share.attempts} attempts, under {alarms.collapse:.0%}"
    return Alert("collapse", text, value, alarms.collapse)


def duplicates(accepted: int, refused: Mapping[str, int], alarms: Alarms) -> Alert | None:
    """Return an alert if too many of the tasks that were made repeat old ones.

    `accepted` and `refused` (by reason, as in `Batch.refused`) count what the latest `window` proposals or more
    came to.
    """
    repeats = sum(refused.get(reason, 0) for reason in REPEATS)
    made = accepted + sum(count for reason, count in refused.items() if reason not in ("unmade", "given_up"))
    if made < alarms.window or repeats / made <= alarms.duplicates:
        return None
    text = f"duplicates pile up: {repeats} of {made} tasks repeat old ones, over {alarms.duplicates:.0%}"
    return Alert("duplicates", text, repeats / made, alarms.duplicates)


def disagreement(verdicts: Iterable[tuple[str, bool]], alarms: Alarms) -> Alert | None:
    """Return an alert if the judge contradicts itself on too many cases.

    `verdicts` are (case, accepted) pairs; only cases judged more than once count, the newest `window` of them.
    """
    by_case: dict[str, list[bool]] = {}
    for case, accepted in verdicts:
        by_case.setdefault(case, []).append(accepted)
    again = [answers for answers in by_case.values() if len(answers) > 1][-alarms.window :]
    if not again:
        return None
    torn = sum(len(set(answers)) > 1 for answers in again)
    if torn / len(again) <= alarms.disagreement:
        return None
    text = f"the judge disagrees with itself: on {torn} of {len(again)} cases, over {alarms.disagreement:.0%}"
    return Alert("disagreement", text, torn / len(again), alarms.disagreement)


def retrieval(arms: Arms, *, least: int) -> Alert | None:
    """Return an alert if advice surely lowers success.

    `arms` are the latest attempts for which there was advice, those that had it and those from which it was withheld
    by chance; `least` of each are needed.
    """
    if min(arms.with_attempts, arms.without_attempts) < least:
        return None
    found = gain([arms])
    if found is None or found.at_most(RETRIEVAL_Z) >= 0:
        return None
    text = (
        f"advice hurts: {arms.with_successes} of {arms.with_attempts} attempts succeeded with it, "
        f"{arms.without_successes} of {arms.without_attempts} without"
    )
    return Alert("retrieval", text, found.value, 0.0)


def wasted(accepted: int, tries: int, alarms: Alarms) -> Alert | None:
    """Return an alert if of a proposer's latest tries (`window` or more) surely too few were taken."""
    share = Share(tries, accepted)
    if tries < alarms.window or share.interval is None or share.interval[1] >= ACCEPTED:
        return None
    text = f"the proposer's tasks come to nothing: {accepted} of {tries} were taken, under {ACCEPTED:.0%}"
    return Alert("proposer", text, accepted / tries, ACCEPTED)
