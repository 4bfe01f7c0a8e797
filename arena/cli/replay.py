"""`arena replay`: show, verify, export and compare records."""

import json
import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import click

from arena.cli.common import debug_option, json_option, print_json
from games.base import Event
from games.registry import load_game
from replays.errors import RecordError, RecordTooNew, RecordUnreadable, RecordWriteFailed
from replays.export import FORMATS, JsonLines, check_perspective, to_jsonl, to_text, who
from replays.export_html import to_html
from replays.reader import read_record
from replays.record import SUFFIX, Record
from replays.verify import verify_file
from replays.visitors import OMNISCIENT, PUBLIC, Counts, Perspective, sentence, walk

EXIT_DIFFERENT, EXIT_MISMATCH = 1, 3

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)


def _perspective_options(command: Command) -> Command:
    for option in (
        click.option("--all", "everything", is_flag=True, help="As the omniscient reader: everything."),
        click.option("--public", "public", is_flag=True, help="As the public saw it."),
        click.option("--seat", type=int, metavar="N", help="As seat N saw it."),
    ):
        command = option(command)
    return command


@click.group()
@debug_option
def replay() -> None:
    """Show, verify, export and compare records."""


@replay.command()
@click.argument("file", type=_FILE)
@_perspective_options
@click.option("--ply", type=int, metavar="N", help="Only up to the moment when ply N was to be played.")
@json_option
@debug_option
def show(
    file: Path, seat: int | None, public: bool, everything: bool, ply: int | None, as_json: bool
) -> None:
    """Tell the match in FILE in sentences.

    Without --seat or --all only what the public saw is told: a record holds every hidden role, and those
    should appear on a screen only when they are asked for.
    """
    perspective = _perspective(seat, public, everything, default=PUBLIC)
    record = read_record(file)
    check_perspective(record, perspective)
    plies = walk(record, Counts())["plies"]
    if ply is not None and not 0 <= ply <= plies:
        raise click.BadParameter(f"got {ply}, this match has plies 0 to {plies}", param_hint="'--ply'")
    if as_json:
        lines = walk(record, JsonLines(record, perspective), before_ply=ply)
        print_json(_document(record, perspective, [json.loads(line) for line in lines]))
    else:
        click.echo(to_text(record, perspective, before_ply=ply), nl=False)


def _document(record: Record, perspective: Perspective, rows: list[dict[str, Any]]) -> dict[str, Any]:
    game = load_game(record.header.game)
    found: dict[str, Any] = {"perspective": perspective, "header": {}, "events": []}
    for row in rows:
        kind = row.pop("type")
        if kind == "event":
            told = sentence(game, Event(row["kind"], row["data"], None))
            found["events"].append({**row, "text": told})
        elif kind == "input":
            found.setdefault("inputs", []).append({"before_event": len(found["events"]), **row})
        else:
            found[kind] = row
    return found


@replay.command()
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="FILE...")
@json_option
@debug_option
def verify(files: tuple[Path, ...], as_json: bool) -> None:
    """Play records again and compare every event; directories are searched.

    Exit code 3 where a record is damaged, cut short, or not what the rules give. `first_bad` is the index of
    the first event that is missing or wrong.
    """
    results = []
    for path in _records(files):
        verdict = verify_file(path)
        results.append(
            {
                "file": str(path),
                "ok": verdict.ok,
                "events": verdict.events,
                "first_bad": verdict.first_bad,
                "reason": verdict.reason,
            }
        )
        if not as_json and not verdict.ok:
            where = "" if verdict.first_bad is None else f" at event {verdict.first_bad}"
            click.echo(f"bad{where}: {_shown(path)}: {verdict.reason}")
    bad = sum(not result["ok"] for result in results)
    if as_json:
        print_json(results)
    else:
        count = f"{len(results)} record{'' if len(results) == 1 else 's'}"
        events = sum(int(str(result["events"])) for result in results)
        click.echo(f"{count}, {events} events: {'all verify' if not bad else f'{bad} not ok'}")
    if bad:
        raise click.exceptions.Exit(EXIT_MISMATCH)


@replay.command()
@click.argument("file", type=_FILE)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("--out", type=_FILE, help="Where to write it; - is stdout.  [default: stdout]")
@_perspective_options
@debug_option
def export(file: Path, form: str, out: Path | None, seat: int | None, public: bool, everything: bool) -> None:
    """Write the record in FILE as JSON lines, as text, or as a page that plays it back.

    An export holds everything unless --public or --seat is given; then it holds only what that reader may see.
    """
    perspective = _perspective(seat, public, everything, default=OMNISCIENT)
    record = read_record(file)
    if form == "jsonl":
        content = "".join(f"{line}\n" for line in to_jsonl(record, perspective))
    else:
        content = to_html(record, perspective) if form == "html" else to_text(record, perspective)
    _note_damage(file, record)
    if out is None or out == Path("-"):
        click.echo(content, nl=False)
        return
    if _is_record(out):
        raise RecordWriteFailed(f"{out}: cannot write the export: a record is there; give another --out")
    try:
        _write(out, content)
    except OSError as error:
        raise RecordWriteFailed(f"{out}: cannot write the export: {error.strerror or error}") from None
    click.echo(f"{_shown(out)}: {form}, as seen by {who(perspective)}")


def _is_record(path: Path) -> bool:
    """Return whether a record is at `path`, also one that is damaged behind its header or of a newer schema."""
    if not path.is_file():  # reading a device may never end
        return False
    try:
        read_record(path)
    except RecordTooNew:
        return True
    except RecordError:
        return False
    return True


def _write(path: Path, content: str) -> None:
    """Write a file whole or not at all, so that what was there stays where the disk is full."""
    if path.exists() and not path.is_file():  # a device or a pipe, which nothing may take the place of
        path.write_text(content, encoding="utf-8", newline="\n")
        return
    target = path.resolve()
    part = target.with_name(f".export-{os.getpid()}.part")
    try:
        part.write_text(content, encoding="utf-8", newline="\n")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@replay.command()
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@json_option
@debug_option
def diff(a: Path, b: Path, as_json: bool) -> None:
    """Find the first event in which the records A and B differ.

    Exit code 0 where their events are the same, 1 where they differ. Who played is no event: fields of the
    header that differ are listed, and change nothing.
    """
    first, second = read_record(a), read_record(b)
    _note_damage(a, first)
    _note_damage(b, second)
    one, other = first.header.to_data(), second.header.to_data()
    fields = [name for name in one if one[name] != other[name]]
    found: tuple[int, Event | None, Event | None] | None = None
    for at, (left, right) in enumerate(zip_longest(_events(first), _events(second))):
        if left is None or right is None or left[1] != right[1]:
            found = at, left and left[0], right and right[0]
            break
    if as_json:
        index, *events = found if found is not None else (None, None, None)
        sides = dict(zip("ab", map(_event_data, events), strict=True))
        print_json({"same": found is None, "event": index, **sides, "header": fields})
    else:
        if fields:
            click.echo(f"header differs in: {', '.join(fields)}")
        if found is None:
            count = sum(1 for _ in first.events())
            click.echo(f"the events are the same, all {count}")
        else:
            click.echo(f"event {found[0]} is the first that differs")
            click.echo(f"  a: {_told(first, found[1])}")
            click.echo(f"  b: {_told(second, found[2])}")
    if found is not None:
        raise click.exceptions.Exit(EXIT_DIFFERENT)


def _perspective(seat: int | None, public: bool, everything: bool, *, default: Perspective) -> Perspective:
    if (seat is not None) + public + everything > 1:
        raise click.UsageError("give one of --seat N, --public and --all", click.get_current_context())
    if seat is not None:
        return seat
    return PUBLIC if public else OMNISCIENT if everything else default


def _records(paths: tuple[Path, ...]) -> Iterator[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.rglob(f"*{SUFFIX}") if one.is_file())
            if not inside:
                raise RecordUnreadable(f"{path}: this directory holds no record, their names end in {SUFFIX}")
            found += inside
        elif not path.exists():
            raise RecordUnreadable(f"{path}: cannot read the record: No such file or directory")
        else:
            found.append(path)
    return iter(dict.fromkeys(found))


def _events(record: Record) -> Iterator[tuple[Event, bytes]]:
    pairs = zip(record.entries, record.bodies, strict=True)
    return ((entry, body) for entry, body in pairs if isinstance(entry, Event))


def _event_data(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {
        "kind": event.kind,
        "data": json.loads(json.dumps(event.data, default=bytes.hex)),
        "audience": None if event.audience is None else list(event.audience),
    }


def _told(record: Record, event: Event | None) -> str:
    if event is None:
        why = "the record has ended" if record.damage is None else record.damage.reason
        return f"(no event: {why})"
    return sentence(load_game(record.header.game), event)


def _note_damage(path: Path, record: Record) -> None:
    if record.damage is not None:
        click.echo(f"note: {_shown(path)}: event {record.damage.event}: {record.damage.reason}", err=True)


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "replace").decode()
