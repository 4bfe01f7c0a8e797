"""The figures of a run of `arena evolve` in lines: success, skills, difficulty, strategies, diversity, judging."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from clients.spectator.bars import spark
from clients.spectator.drawing import Line, crop, flow, meter, width_of, wrap
from clients.spectator.widgets.lines import Lines
from games.text import neutralise

BAND = (0.35, 0.65)
"""Between these the generator holds the success of training tasks."""
TOP_LEVEL = 10.0
LATELY = 5
"""Stretches of a run (`series`, of which there are at most 40) that count as lately."""
MAX_ALERTS = 4
SHIFTS = {
    "same": "Lately neither harder tasks nor a worse agent cost success for certain.",
    "harder": "Lately the tasks got harder; the agent did not get worse.",
    "worse": "Lately the agent got worse; the tasks did not get harder.",
    "both": "Lately the tasks got harder and the agent got worse.",
    "too few": "Too few attempts yet to tell harder tasks from a worse agent.",
}
SHARE_CELLS, HEAD_CELLS = 6, 14

Figures = Mapping[str, Any]


class RunFigures(Lines):
    """Draws the figures of a run's `metrics.json`."""

    DEFAULT_CSS = """
    RunFigures {
        padding: 0 1;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._figures: Figures = {}

    def show(self, figures: Figures) -> None:
        """Show others."""
        self._figures = figures
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        found = self._figures
        if not found.get("series"):
            return [[("No generation is done yet.", "dim")]] if found else []
        parts = (_alerts, _success, _skills, _difficulty, _strategies, _diversity, _lessons, _judged)
        lines: list[Line] = []
        for part in parts:
            made = part(found, width)
            lines += [*([[]] if lines and made else []), *made]
        return [crop(line, width) for line in lines]


def _title(title: str, note: str, width: int) -> Line:
    line: Line = [("── ", "dim"), (title, "title bold"), (f" {note}" if note else "", "dim")]
    return [*line, (" " + "─" * max(width - width_of(line) - 1, 0), "dim")]


def _alerts(found: Figures, width: int) -> list[Line]:
    alerts = found.get("alerts") or []
    if not alerts:
        return []
    lines = [_title("Alerts", f"{len(alerts)} so far, the last first", width)]
    for alert in list(reversed(alerts))[:MAX_ALERTS]:
        first, *rest = wrap(
            neutralise(f"{alert.get('kind')}: {alert.get('text')}"), max(width - HEAD_CELLS, 10)
        )
        when = f"generation {alert.get('generation')}"
        lines.append([(f"{when:<{HEAD_CELLS}}", "dim"), (first, "error")])
        lines += [[(" " * HEAD_CELLS + more, "error")] for more in rest]
    return lines


def _success(found: Figures, width: int) -> list[Line]:
    success, series = found.get("success") or {}, found["series"]
    cells = max(width - 48, 0)
    lines = [_title("Success", "share solved, 95 % interval, over the run", width)]

    def row(name: str, share: Figures | None, plot: Sequence[float | None], note: str) -> None:
        line: Line = [(f"{name:<{HEAD_CELLS + 2}}", "text"), *_share(share), (f"{note:<14}", "dim")]
        known = [value for value in plot if value is not None]  # not every stretch has a probe
        lines.append([*line, (spark(known, scale=(0.0, 1.0), cells=cells), "accent")])

    row("set to train", success.get("latest"), [one.get("overall") for one in series], "  latest")
    row("first tries", success.get("first_try"), [], "  at new levels")
    row("retention", success.get("retention"), [], "  of old tasks")
    for level, one in (success.get("fixed") or {}).items():
        began = (one.get("first") or {}).get("value")
        note = "" if began is None else f"  from {began:.0%}"
        row(f"fixed, level {level}", one.get("latest"), [s.get("fixed", {}).get(level) for s in series], note)
    if (success.get("test_set") or {}).get("value") is not None:
        row("far beyond", success["test_set"], [], "  the test set")
    return lines


def _share(share: Figures | None) -> Line:
    value = (share or {}).get("value")
    if share is None or value is None:
        return [(f"{'–':>{SHARE_CELLS}}", "dim"), (" " * 9, "")]
    low, high = share.get("interval") or (value, value)
    return [
        (f"{value:>{SHARE_CELLS}.0%}", "text bold"),
        (f" {f'{low * 100:.0f}–{high * 100:.0f}':<8}", "dim"),
    ]


def _skills(found: Figures, width: int) -> list[Line]:
    series, frontier = found["series"], found.get("frontier") or {}
    names = sorted(frontier)
    if not names:
        return []
    last = series[-1].get("success") or {}
    head = max(len(name) for name in names) + 1
    room = max(width - head - 30, 0)
    cells = room // 2
    true = any("true_latest" in frontier[name] for name in names)
    top = max(
        [TOP_LEVEL / 2]
        + [value for one in series for value in (one.get("ability") or {}).values() if value is not None]
    )
    lines = [_title("Skills", f"success of the last attempts · frontier, level 0 to {TOP_LEVEL:g}", width)]
    for name in names:
        edge = frontier[name]
        now = last.get(name)
        good = now is not None and BAND[0] <= now <= BAND[1]
        lines.append(
            [
                (f"{neutralise(name):<{head}}", "text"),
                (f"{'–' if now is None else f'{now:.0%}':>4} ", "text bold" if good else "warn"),
                (
                    _plot([(one.get("success") or {}).get(name) for one in series], (0.0, 1.0), cells),
                    "accent",
                ),
                (f"  {edge['first']:>4.1f} → ", "dim"),
                (f"{edge['latest']:<4.1f} ", "text bold"),
                (_plot([(one.get("ability") or {}).get(name) for one in series], (0.0, top), cells), "good"),
                (f" {edge['true_latest']:>5.1f}" if "true_latest" in edge else "", "dim"),
            ]
        )
    if true:
        lines.append([("the last number: the learner's true level, which the generator is not told", "dim")])
    return lines


def _plot(values: Sequence[float | None], scale: tuple[float, float], cells: int) -> str:
    return f"{spark(values, scale=scale, cells=cells):<{cells}}"


def _difficulty(found: Figures, width: int) -> list[Line]:
    series, histograms = found["series"], found.get("histograms") or {}
    names = [name for name in series[-1].get("difficulty") or {} if histograms.get(name)]
    if not names:
        return []
    head = max(len(name) for name in names) + 1
    cells = max(width - head - 32, 0)
    lines = [_title("Difficulty", "of what is set, and its spread: first third → last third", width)]
    for name in names:
        bins = histograms[name]
        scale = (bins[0]["low"], bins[-1]["high"])
        values = [(one.get("difficulty") or {}).get(name) for one in series]
        known = [value for value in values if value is not None]
        if not known:
            continue
        lines.append(
            [
                (f"{neutralise(name.replace('_', ' ')):<{head}}", "text"),
                (f"{known[0]:>5.1f} → ", "dim"),
                (f"{known[-1]:<5.1f} ", "text bold"),
                (_plot(values, scale, cells), "good"),
                (f"  {_spread(bins, 'first')}", "dim"),
                (" → ", "dim"),
                (_spread(bins, "latest"), "accent"),
            ]
        )
    return lines


def _spread(bins: Sequence[Figures], part: str) -> str:
    counts = [one[part] for one in bins]
    return spark(counts, scale=(0.0, float(max(counts) or 1)), cells=len(counts))


def _strategies(found: Figures, width: int) -> list[Line]:
    lately: Counter[str] = Counter()
    for one in found["series"][-LATELY:]:
        lately.update(one.get("strategies") or {})
    if not lately:
        return []
    whole = lately.total()
    chunks: list[Line] = [
        [
            (f"{neutralise(name) or '?'} ", "text"),
            (meter(count, whole, 8), "accent"),
            (f" {count / whole:.0%}", "text bold"),
        ]
        for name, count in lately.most_common()
    ]
    lines = [_title("Strategies", "of the tasks set lately", width), *flow(chunks, width, gap="   ")]
    refused = {name: count for name, count in (found.get("refused") or {}).items() if count}
    if refused:
        told = ", ".join(f"{neutralise(name)} {count:,}" for name, count in sorted(refused.items()))
        lines += [[(part, "dim")] for part in wrap(f"refused before they were set: {told}", width)]
    return lines


def _diversity(found: Figures, width: int) -> list[Line]:
    series, variety = found["series"], found.get("diversity") or {}
    cells = max(width - 48, 0)
    lines = [_title("Diversity", f"of the last {variety.get('tasks', 0)} tasks", width)]

    def row(name: str, told: str, note: str, key: str, top: float) -> None:
        values = [one.get(key) for one in series] if key else []
        line: Line = [
            (f"{name:<{HEAD_CELLS + 10}}", "text"),
            (f"{told:>7}", "text bold"),
            (f"  {note:<15}", "dim"),
        ]
        lines.append([*line, (spark(values, scale=(0.0, top), cells=cells), "accent")])

    highest = variety.get("highest_similarity")
    if highest is not None:
        row("highest similarity", f"{highest:.2f}", "to an old task", "highest_similarity", 1.0)
    most = max((one.get("combinations") or 0 for one in series), default=0)
    row(
        "combinations", str(variety.get("combinations", 0)), "skill × level", "combinations", float(most or 1)
    )
    share = series[-1].get("largest_share")
    if share is not None:
        row("the largest skill", f"{share:.0%}", "of all tasks", "largest_share", 1.0)
    share = variety.get("weakest_share")
    if share is not None:
        row("the weakest skill", f"{share:.0%}", neutralise(str(variety.get("weakest"))), "", 1.0)
    return lines


def _lessons(found: Figures, width: int) -> list[Line]:
    """Return what was learnt from attempts and whether it helps, and what a model proposed."""
    lines: list[Line] = []
    told = found.get("lessons") or {}
    if told.get("found_for"):
        gain = told.get("gain")
        words = [f"{told.get('active', 0)} in use", f"solved with advice {_value(told.get('advised'))}"]
        words.append(f"held back {_value(told.get('control'))}")
        if gain:
            low, high = gain["interval"]
            words.append(f"gain {gain['value']:+.0%} ({low:+.0%} to {high:+.0%})")
        words.append(f"given up {told.get('retired', 0)}")
        lines += flow([[(word, "text")] for word in words], width, gap=" · ")
    proposer = found.get("proposer")
    if proposer:
        asked = (
            f"the model proposed {proposer.get('tries', 0)} tasks, {proposer.get('accepted', 0)} were taken"
        )
        solved = f"solved {_value(proposer.get('success'))}, all others {_value(proposer.get('others'))}"
        lines += flow([[(word, "text")] for word in (asked, solved)], width, gap=" · ")
    return [_title("Lessons", "told beside a share that is held back", width), *lines] if lines else []


def _value(share: Figures | None) -> str:
    value = (share or {}).get("value")
    return "–" if value is None else f"{value:.0%}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _judged(found: Figures, width: int) -> list[Line]:
    training, judge = found.get("training") or {}, found.get("judge") or {}
    lines = [_title("Judged", "", width)]
    reasons = ", ".join(
        f"{neutralise(why)} {count:,}" for why, count in (training.get("quarantined_tasks") or {}).items()
    )
    set_apart = training.get("quarantined", 0)
    chunks: list[Line] = [
        [(f"{training.get('may_train', 0):,} attempts may train", "text")],
        [(f"{training.get('held_out', 0):,} held out", "text")],
        [(f"{set_apart:,} in quarantine", "warn" if set_apart else "text")],
        *([] if found.get("alerts") else [[("no alert was raised", "text")]]),
    ]
    lines += flow(chunks, width, gap=" · ")
    if reasons:
        lines += [[(part, "warn")] for part in wrap(f"tasks in quarantine: {reasons}", width)]
    waiting = (judge.get("queue") or {}).get("waiting", 0)
    if waiting:
        lines.append([(f"{_count(waiting, 'case')} for a person: arena judge audit", "accent")])
    disputed = len(judge.get("disputed_tasks") or ())
    if disputed:
        lines.append([(f"{_count(disputed, 'task')} whose verdict a person disputes", "warn")])
    if found.get("faults"):
        lines.append([(f"{_count(found['faults'], 'attempt')} ended by no doing of the actor", "warn")])
    tried = judge.get("regression")
    if tried:
        lines.append([(f"judge regression: {tried.get('right')} of {tried.get('cases')} right", "dim")])
    for back in (found.get("rollbacks") or [])[-1:]:
        lines.append([(f"rolled back to generation {back.get('to')}", "warn")])
    shift = found.get("shift")
    if shift:
        lines += [[(part, "dim")] for part in wrap(_shift(shift), width)]
    return lines


def _shift(shift: Figures) -> str:
    words = SHIFTS.get(str(shift.get("verdict")), "")
    if shift.get("verdict") == "too few" or shift.get("before") is None:
        return words
    return (
        f"{words} Success {shift['before']:.0%} → {shift['after']:.0%}: {shift['by_tasks']:+.0%} by the tasks, "
        f"{shift['by_agent']:+.0%} by the agent."
    )
