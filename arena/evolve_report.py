"""The report of a run of `arena evolve`: a JSON document, and one self-contained page with plots."""

import html
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.judges.queue import PersonQueue
from arena.evolve_log import Entry, State
from arena.evolve_metrics import ROLLING, metrics
from arena.plots import bars, legend, lines
from games.text import neutralise

METRICS = "metrics.json"
PAGE = "report.html"


def write_report(
    folder: Path, state: State, entries: Sequence[Entry], *, queue: PersonQueue
) -> dict[str, Any]:
    """Write `metrics.json` and `report.html` into `folder`, whole or not at all; return the figures."""
    found = metrics(
        state,
        entries,
        waiting=queue.counts(run=str(state.current.config["name"])),
        disputed=queue.disputed_tasks(),
    )
    _write(folder / METRICS, json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    _write(folder / PAGE, page(found))
    return found


def _write(path: Path, text: str) -> None:
    made = path.with_name(f".{path.name}.new")
    made.write_text(text, encoding="utf-8")
    os.replace(made, path)


def page(found: Mapping[str, Any]) -> str:
    """Return the page of some figures (`arena.evolve_metrics.metrics`). It needs nothing beside itself."""
    series = found["series"]
    skills = sorted(series[-1]["ability"]) if series else []
    parts = [_head(found), _alerts(found)]
    if series:
        parts += [
            _frontier(series, skills),
            _success(series, skills),
            _fixed(series),
            _histograms(found["histograms"]),
            _by_dimension(found["by_dimension"]),
            _diversity(series),
        ]
    parts += [_profile(found), _proposer(found["proposer"]), _lessons(found["lessons"]), _versions(found)]
    title = html.escape(f"{found['run']}: {found['generations']} generations")
    body = "\n".join(parts)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _head(found: Mapping[str, Any]) -> str:
    success, shift = found["success"], found["shift"]
    cells = [
        ("generations", f"{found['generations']:,}"),
        ("tasks", f"{found['tasks']:,}"),
        ("attempts", f"{found['attempts']:,}"),
        ("seconds", f"{found['seconds']:,.0f}"),
        ("success, latest", _share(success["latest"])),
        ("first try at new difficulty", _share(success["first_try"])),
        ("retention of old tasks", _share(success["retention"])),
        ("test set, far beyond", _share(success["test_set"])),
        ("may train", f"{found['training']['may_train']:,}"),
        ("in quarantine", f"{found['training']['quarantined']:,}"),
        ("waits for a person", f"{found['judge']['queue']['waiting']:,}"),
    ]
    told = "".join(f"<div><b>{_text(value)}</b><span>{_text(name)}</span></div>" for name, value in cells)
    lately = "" if shift is None else f"<p>{_text(_shift(shift))}</p>"
    return (
        f"<h1>{_text(found['run'])}</h1><p>actor {_text(found['actor'])}, configuration "
        f"<code>{_text(found['config'][:12])}</code></p><section class=figures>{told}</section>{lately}"
    )


def _shift(shift: Mapping[str, Any]) -> str:
    words = {
        "same": "Lately neither harder tasks nor a worse agent cost success for certain.",
        "harder": "Lately the tasks got harder; the agent did not get worse.",
        "worse": "Lately the agent got worse; the tasks did not get harder.",
        "both": "Lately the tasks got harder and the agent got worse.",
        "too few": "Too few attempts to tell harder tasks from a worse agent.",
    }[shift["verdict"]]
    if shift["verdict"] == "too few":
        return words
    return (
        f"{words} Success went from {shift['before']:.0%} to {shift['after']:.0%}: "
        f"{shift['by_tasks']:+.0%} by the tasks, {shift['by_agent']:+.0%} by the agent."
    )


def _alerts(found: Mapping[str, Any]) -> str:
    if not found["alerts"]:
        return "<h2>Alerts</h2><p>None was raised.</p>"
    rows = [[str(alert["generation"]), alert["kind"], alert["text"]] for alert in found["alerts"]]
    return "<h2>Alerts</h2>" + _table(["generation", "kind", ""], rows)


def _frontier(series: Sequence[Mapping[str, Any]], skills: Sequence[str]) -> str:
    at = [one["generation"] for one in series]
    ability = {skill: [one["ability"].get(skill) for one in series] for skill in skills}
    level = {skill: [one["level"].get(skill) for one in series] for skill in skills}
    plots = [
        _figure(
            "The frontier: the level at which half of the attempts succeed, by skill",
            lines(at, ability, low=0, y="level"),
        ),
        _figure("The level of the tasks that were set, by skill", lines(at, level, low=0, y="level")),
    ]
    if series[-1]["truth"]:
        truth = {skill: [(one["truth"] or {}).get(skill) for one in series] for skill in skills}
        plots.append(
            _figure("The true ability of the simulated learner, by skill", lines(at, truth, low=0, y="level"))
        )
    return f"<h2>Frontier</h2>{legend(skills)}<section class=plots>{''.join(plots)}</section>"


def _success(series: Sequence[Mapping[str, Any]], skills: Sequence[str]) -> str:
    at = [one["generation"] for one in series]
    by_skill = {skill: [one["success"].get(skill) for one in series] for skill in skills}
    overall = {"all skills": [one["overall"] for one in series]}
    return (
        f"<h2>Success by skill over time</h2>{legend(skills)}<section class=plots>"
        + _figure(
            f"Training tasks, by skill: each one's last {ROLLING} attempts",
            lines(at, by_skill, low=0, high=1, y="share solved", band=(0.35, 0.65)),
        )
        + _figure(
            "Training tasks, all skills (marked: 35 % to 65 %)",
            lines(at, overall, low=0, high=1, y="share solved", band=(0.35, 0.65)),
        )
        + "</section>"
    )


def _fixed(series: Sequence[Mapping[str, Any]]) -> str:
    seen = [one for one in series if any(value is not None for value in one["fixed"].values())]
    if not seen:
        return ""
    names = list(seen[-1]["fixed"])
    shown = {f"level {name}": [one["fixed"].get(name) for one in seen] for name in names}
    at = [one["generation"] for one in seen]
    return (
        f"<h2>Fixed difficulty</h2>{legend(list(shown))}<section class=plots>"
        + _figure(
            "The same tasks again and again, never trained on",
            lines(at, shown, low=0, high=1, y="share solved"),
        )
        + "</section>"
    )


def _histograms(found: Mapping[str, Any]) -> str:
    figures = [
        _figure(
            name.replace("_", " "),
            bars(
                [f"{b['low']:g}–{b['high']:g}" for b in bins],
                {"first third": [b["first"] for b in bins], "last third": [b["latest"] for b in bins]},
                y="tasks",
            ),
        )
        for name, bins in found.items()
    ]
    names = legend(["first third", "last third"])
    return f"<h2>Difficulty of the tasks, by dimension</h2>{names}<section class=plots>{''.join(figures)}</section>"


def _by_dimension(found: Mapping[str, Any]) -> str:
    figures = [
        _figure(
            name.replace("_", " "),
            bars(
                [f"{b['low']:g}–{b['high']:g}" for b in bins],
                {"share solved": [b["successes"] / b["attempts"] if b["attempts"] else 0 for b in bins]},
                y="share solved",
                high=1,
            ),
        )
        for name, bins in found.items()
    ]
    return f"<h2>Success along each dimension</h2><section class=plots>{''.join(figures)}</section>"


def _diversity(series: Sequence[Mapping[str, Any]]) -> str:
    at = [one["generation"] for one in series]
    alike = {
        "highest": [one["highest_similarity"] for one in series],
        "mean": [one["similarity"] for one in series],
    }
    shares = {"largest share of a skill": [one["largest_share"] for one in series]}
    cells = {"combinations": [one["combinations"] for one in series]}
    return (
        f"<h2>Diversity</h2>{legend(list(alike))}<section class=plots>"
        + _figure("Similarity of new tasks to old ones", lines(at, alike, low=0, high=1, y="similarity"))
        + _figure("Distinct combinations of skill and difficulty", lines(at, cells, low=0, y="combinations"))
        + _figure("The largest share of one skill", lines(at, shares, low=0, high=1, y="share"))
        + "</section>"
    )


def _profile(found: Mapping[str, Any]) -> str:
    frontier = found["frontier"]
    rows = []
    for one in found["profile"]:
        edge = frontier.get(one["skill"])
        moved = f"{edge['first']:.1f} → {edge['latest']:.1f}" if edge else ""
        rows.append([one["skill"], f"{one['attempts']:,}", _share(one), moved])
    refused = ", ".join(f"{name} {count:,}" for name, count in sorted(found["refused"].items())) or "none"
    strategies = ", ".join(f"{name or '?'} {count:,}" for name, count in sorted(found["strategies"].items()))
    return (
        "<h2>Profile</h2>"
        + _table(["skill", "attempts", "success", "frontier"], rows, right=(1, 2))
        + f"<p>Strategies: {_text(strategies)}.<br>Refused: {_text(refused)}.</p>"
    )


def _proposer(found: Mapping[str, Any] | None) -> str:
    """Return what became of the tasks that a model proposed."""
    if found is None:
        return ""
    refused = ", ".join(f"{name} {count:,}" for name, count in sorted(found["refused"].items())) or "none"
    failed = f" Its model failed in {found['failed']:,} generations." if found["failed"] else ""
    told = (
        f"{found['accepted']:,} of {found['numbers']:,} tasks asked for in {found['tries']:,} tries, and "
        f"{found['test']:,} for the test set.{failed}"
    )
    success = f"Solved: {_share(found['success'])} of its tasks, {_share(found['others'])} of the others."
    return (
        f"<h2>Tasks proposed by a model</h2><p><code>{_text(found['version'])}</code>: {_text(told)}<br>"
        f"Refused: {_text(refused)}.<br>{_text(success)}</p>"
    )


def _lessons(found: Mapping[str, Any]) -> str:
    """Return what was learnt from attempts, and what advice gained."""
    if not found["made"]:
        return ""
    why = ", ".join(f"{name} {count:,}" for name, count in sorted(found["retired_for"].items()))
    counts = (
        f"{found['made']:,} made, {found['active']:,} active, {found['merged']:,} merged, "
        f"{found['evicted']:,} evicted, {found['retired']:,} retired{f' ({why})' if why else ''}."
    )
    if not found["found_for"]:
        return f"<h2>Lessons</h2><p>{_text(counts)} None was offered: the actor does not read.</p>"
    success = (
        f"Solved with advice {_share(found['advised'])} of {found['advised']['attempts']:,}, without "
        f"{_share(found['control'])} of {found['control']['attempts']:,}; gain {_gain(found['gain'])}."
    )
    rows = [
        [
            one["text"],
            one["status"],
            f"{one['offers']:,}",
            "–" if one["with"] is None else f"{one['with']:.0%}",
            "–" if one["without"] is None else f"{one['without']:.0%}",
            _gain(one["gain"]),
        ]
        for one in found["table"]
    ]
    head = ["lesson", "", "offers", "solved with", "without", "gain"]
    return f"<h2>Lessons</h2><p>{_text(counts)}<br>{_text(success)}</p>" + _table(head, rows, right=(2, 3, 4))


def _gain(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "–"
    low, high = found["interval"]
    return f"{found['value']:+.0%} ({low:+.0%} to {high:+.0%})"


def _versions(found: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{one['id']}{' (in force)' if one['id'] == found['bundle'] else ''}",
            str(one["generation"]),
            one["digest"][:12],
            one["generator"],
            one["judge"],
            one["policy"] or one["actor"],
        ]
        for one in found["bundles"]
    ]
    told = found["judge"]["regression"]
    regression = (
        ""
        if told is None
        else f"<p>Judge regression: {told['right']} of {told['cases']} right, {told['agree']} alike "
        f"{told['times']} times, {told['seconds']:.2f} s.</p>"
    )
    back = "".join(
        f"<p>Rolled back to generation {one['to']} and bundle {one['bundle']}.</p>"
        for one in found["rollbacks"]
    )
    head = ["bundle", "from generation", "configuration", "generator", "judge", "actor"]
    return f"<h2>Versions</h2>{_table(head, rows)}{regression}{back}"


def _figure(caption: str, plot: str) -> str:
    return f"<figure><figcaption>{_text(caption)}</figcaption>{plot}</figure>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    titles = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines_ = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if i in right else ''}>{_text(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<div class=wide><table><tr>{titles}</tr>{lines_}</table></div>"


def _share(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return "–"
    low, high = found["interval"]
    return f"{found['value']:.0%} ({low:.0%}–{high:.0%})"


def _text(value: object) -> str:
    return html.escape(neutralise(str(value)))


_STYLE = """
:root{color-scheme:light dark;--fg:#1d2330;--bg:#fff;--soft:#6a7385;--line:#dfe3ea;--card:#f6f7f9}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--bg:#14171d;--soft:#98a1b3;--line:#2c323d;--card:#1c2028}}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 20px 60px}h1{margin:0 0 2px;font-size:26px}
h2{margin:34px 0 8px;font-size:18px}p{margin:6px 0}code{font-size:.92em}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.figures div{background:var(--card);border-radius:8px;padding:10px 12px}
.figures b{display:block;font-size:17px;font-variant-numeric:tabular-nums}
.figures span{color:var(--soft);font-size:13px}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(330px,1fr));gap:14px}
figure{margin:0;background:var(--card);border-radius:8px;padding:10px}figcaption{font-size:13px;color:var(--soft)}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.axis{stroke:var(--line)}.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13px;margin:4px 0 8px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px}
th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}
.n{text-align:right;font-variant-numeric:tabular-nums}
"""
