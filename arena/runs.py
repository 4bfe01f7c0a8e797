"""The runs below HOME/runs, of `arena train` and `arena evolve`: which there are, how they went, their plots."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.errors import TrainError
from arena.lock import hold
from arena.plots import legend, lines
from arena.train_log import read_metrics
from arena.train_state import RUN_FILE
from games.text import neutralise

RUNS = "runs"
EVOLVE_METRICS = "metrics.json"
PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder. `kind` is `train` or `evolve`, `running` whether a process holds it."""

    name: str
    kind: str
    folder: Path
    running: bool


def all_runs(home: Path) -> list[Run]:
    """Return the runs of a home, by name."""
    root = home / RUNS
    if not root.is_dir():
        return []
    return [run for path in sorted(root.iterdir()) if (run := _run(path)) is not None]


def find_run(home: Path, name: str) -> Run:
    """Return one run. Raises `TrainError`."""
    for run in all_runs(home):
        if run.name == name:
            return run
    known = ", ".join(run.name for run in all_runs(home))[:300] or "none"
    raise TrainError(f"run: got {name[:80]!r}, in {home / RUNS} are: {known}")


def _run(path: Path) -> Run | None:
    if (path / RUN_FILE).is_file():
        kind = "train"
    elif (path / EVOLVE_METRICS).is_file():
        kind = "evolve"
    else:
        return None
    return Run(path.name, kind, path, _held(path))


def _held(path: Path) -> bool:
    taken, unusable = TrainError("taken"), TrainError("unusable")
    try:
        with hold(path, name="lock", mode=0o644, taken=taken, unusable=lambda error: unusable):
            return False
    except TrainError as error:
        return error is taken


def row(run: Run) -> dict[str, Any]:
    """Return what a list says of a run."""
    found: dict[str, Any] = {"run": run.name, "kind": run.kind, "running": run.running}
    if run.kind == "evolve":
        told_ = json.loads((run.folder / EVOLVE_METRICS).read_text(encoding="utf-8"))
        return found | {
            "updates": told_.get("generations"),
            "matches": told_.get("attempts"),
            "seconds": told_.get("seconds"),
            "result": "",
        }
    metrics = read_metrics(run.folder)
    updates = [line for line in metrics if line["kind"] == "update"]
    last = updates[-1] if updates else {}
    evaluations = [line for line in metrics if line["kind"] == "evaluation"]
    return found | {
        "updates": last.get("update", 0),
        "matches": last.get("matches", 0),
        "seconds": metrics[-1].get("seconds", last.get("seconds", 0.0)) if metrics else 0.0,
        "result": "; ".join(_measured(evaluations[-1])) if evaluations else "",
    }


def details(run: Run) -> dict[str, Any]:
    """Return all that is known of a run of `arena train`: its configuration, updates, evaluations and alarms."""
    if run.kind == "evolve":
        found: dict[str, Any] = json.loads((run.folder / EVOLVE_METRICS).read_text(encoding="utf-8"))
        return found
    metrics = read_metrics(run.folder)
    by_kind = {
        kind: [line for line in metrics if line["kind"] == kind]
        for kind in ("update", "evaluation", "alarm", "stop")
    }
    return {
        **row(run),
        "folder": str(run.folder),
        **{
            name: value
            for name, value in json.loads((run.folder / RUN_FILE).read_text(encoding="utf-8")).items()
            if name in ("created", "model", "digest", "config")
        },
        "latest": by_kind["update"][-1] if by_kind["update"] else None,
        "evaluations": by_kind["evaluation"],
        "alarms": by_kind["alarm"],
        "stopped_by": by_kind["stop"][-1]["why"] if by_kind["stop"] else None,
    }


def told(line: Mapping[str, Any]) -> list[str]:
    """Return a line of the metrics in words."""
    update = line["update"]
    match line["kind"]:
        case "update":
            values = line.get("learner", {})
            parts = [f"{line['matches']} matches", f"{line['tokens']} tokens", f"{line['seconds']:.0f} s"]
            for name, value in (
                ("return", line.get("return")),
                ("kl", values.get("kl")),
                ("entropy", values.get("entropy")),
                ("failures", line.get("failures")),
            ):
                if value is not None:
                    parts.append(f"{name} {value:.3g}")
            return [f"update {update}: {', '.join(parts)}"]
        case "evaluation":
            return [f"evaluation after {update}: {text}" for text in _measured(line)]
        case "alarm":
            return [f"alarm in update {update}: {line['text']} ({line['action'].replace('_', ' ')})"]
        case "start" | "resume":
            return [
                f"{line['kind']} at update {update}: {line['model']}, {line['parameters']:,} parameters train"
            ]
    return [f"stop after {update}: {line.get('why')}"]


def _measured(line: Mapping[str, Any]) -> list[str]:
    found = [f"NashConv at {game} {value:.3f}" for game, value in (line.get("nash_conv") or {}).items()]
    for one in line.get("against") or ():
        if one["score"] is None:
            found.append(f"{one['game']} against {one['opponent']}: no match could be played")
            continue
        around = "" if one["low"] is None else f" ({one['low']:.0%} to {one['high']:.0%})"
        found.append(f"{one['game']} against {one['opponent']}: {one['score']:.0%} of the points{around}")
    tasks = line.get("tasks") or {}
    for name, one in (("validation tasks", tasks), ("tasks solved before", tasks.get("retention") or {})):
        if one.get("success") is not None:
            around = "" if one["low"] is None else f" ({one['low']:.0%} to {one['high']:.0%})"
            found.append(f"{name}: {one['success']:.0%} solved{around}")
    return found


def series(run: Run) -> list[tuple[str, str, list[float], dict[str, list[float | None]]]]:
    """Return the plots of a run of `arena train`: title, vertical axis, updates, values by name."""
    metrics = read_metrics(run.folder)
    updates = [line for line in metrics if line["kind"] == "update"]
    evaluations = [line for line in metrics if line["kind"] == "evaluation"]
    found = []
    for title, axis, rows, paths in _plots(updates, evaluations):
        at = [float(line["update"]) for line in rows]
        values = {name: [_at(line, path) for line in rows] for name, path in paths.items()}
        values = {name: one for name, one in values.items() if any(value is not None for value in one)}
        if values:
            found.append((title, axis, at, values))
    return found


Path_ = tuple[Any, ...]


def _plots(
    updates: Sequence[Mapping[str, Any]], evaluations: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, Sequence[Mapping[str, Any]], dict[str, Path_]]]:
    games = sorted({game for line in evaluations for game in line.get("nash_conv") or ()})
    yield "Distance from perfect play", "NashConv", evaluations, {g: ("nash_conv", g) for g in games}
    against: dict[str, Path_] = {}
    for line in evaluations:
        for place, one in enumerate(line.get("against") or ()):
            against.setdefault(f"{one['game']}: {one['opponent']}", ("against", place, "score"))
    yield "Points against fixed opponents", "share", evaluations, against
    tasks: dict[str, Path_] = {
        "held out": ("tasks", "success"),
        "solved before": ("tasks", "retention", "success"),
    }
    yield "Tasks", "solved", evaluations, tasks
    roles = sorted({role for line in updates for role in line.get("by_role") or ()})
    yield "Return by role", "return", updates, {role: ("by_role", role) for role in roles[:8]}
    yield "Success", "share", updates, {"success": ("success",), "failed answers": ("failures",)}
    yield "Steps in a trajectory", "steps", updates, {"steps": ("length",)}
    yield (
        "Divergence",
        "nats",
        updates,
        {"from the reference": ("learner", "kl"), "in an update": ("learner", "drift")},
    )
    yield "Entropy", "nats", updates, {"entropy": ("learner", "entropy")}
    yield "Loss", "loss", updates, {"loss": ("learner", "loss")}
    yield "Gradient", "norm", updates, {"norm": ("learner", "grad_norm")}
    times: dict[str, Path_] = {name: ("time", name) for name in ("publish", "rollout", "learn")}
    yield "Time of an update", "seconds", updates, times


def _at(line: Any, path: Path_) -> float | None:
    for part in path:
        try:
            line = line[part]
        except (KeyError, IndexError, TypeError):
            return None
    return float(line) if isinstance(line, int | float) else None


def page(run: Run) -> str:
    """Return a page with the plots of a run. It needs nothing beside itself."""
    metrics = read_metrics(run.folder)
    figures = []
    for title, axis, at, values in series(run):
        names = legend(list(values)) if len(values) > 1 else ""
        plot = lines(at, values, y=axis, x="update")
        figures.append(f"<figure><figcaption>{_text(title)}</figcaption>{names}{plot}</figure>")
    alarms = "".join(f"<li>{_text(told(line)[0])}</li>" for line in metrics if line["kind"] == "alarm")
    last = [text for line in metrics if line["kind"] == "evaluation" for text in told(line)][-8:]
    shown = "".join(f"<li>{_text(text)}</li>" for text in last)
    about = row(run)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(run.name)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
        f"<body><main><h1>{_text(run.name)}</h1><p>{about['updates']} updates, {about['matches']} matches, "
        f"{about['seconds']:.0f} s</p><ul>{shown}</ul><div class=plots>{''.join(figures)}</div>"
        f"<h2>Alarms</h2>{f'<ul>{alarms}</ul>' if alarms else '<p>None was raised.</p>'}</main></body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(neutralise(str(value)))


STYLE = """
:root{color-scheme:light dark;--fg:#1d2330;--bg:#fff;--soft:#6a7385;--line:#dfe3ea;--card:#f6f7f9}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--bg:#14171d;--soft:#98a1b3;--line:#2c323d;--card:#1c2028}}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 20px 60px}h1{margin:0 0 2px;font-size:26px}h2{font-size:18px}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(330px,1fr));gap:14px}
figure{margin:0;background:var(--card);border-radius:8px;padding:10px}figcaption{font-size:13px;color:var(--soft)}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.axis{stroke:var(--line)}.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13px;margin:4px 0 8px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px;vertical-align:-1px}
"""
