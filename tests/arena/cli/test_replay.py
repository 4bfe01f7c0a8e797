"""`arena replay` as a user calls it."""

import errno
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arena.cli.main import cli
from replays.codec import pack
from replays.export import to_jsonl, to_text
from replays.export_html import to_html
from tests.replays.recording import encode, entries, header, make, read, seal


def arena(*args: object) -> Result:
    return CliRunner().invoke(cli, ["replay", *map(str, args)])


def refused(*args: object) -> str:
    """Return the one line on stderr of a call that is refused with exit code 2."""
    result = arena(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "w.arena"
    path.write_bytes(make("werewolf", seats=6, seed=3, messy=True))
    return path


def test_show_tells_what_the_public_saw_unless_more_is_asked_for(record: Path) -> None:
    whole = read(record.read_bytes())
    assert arena("show", record).stdout == to_text(whole, "public")
    assert arena("show", record, "--public").stdout == to_text(whole, "public")
    assert arena("show", record, "--all").stdout == to_text(whole, "all")
    assert arena("show", record, "--seat", 2).stdout == to_text(whole, 2)


def test_show_up_to_a_ply_is_the_start_of_the_whole(record: Path) -> None:
    whole = arena("show", record, "--all").stdout
    shorter = ""
    for ply in (0, 1, 2, 5):
        told = arena("show", record, "--all", "--ply", ply).stdout
        events = [line for line in told.splitlines() if re.match(r" +\d+  ", line)]
        assert events == [line for line in whole.splitlines() if re.match(r" +\d+  ", line)][: len(events)]
        assert len(told) > len(shorter)
        shorter = told
    assert "Night 1 falls" in arena("show", record, "--ply", 0).stdout, "the deal, before any move"


def test_show_as_json(record: Path) -> None:
    shown = json.loads(arena("show", record, "--json").stdout)
    assert shown["perspective"] == "public"
    assert "seed" not in shown["header"]
    assert all(event["audience"] is None for event in shown["events"])
    assert [event["index"] for event in shown["events"]] == list(range(len(shown["events"])))
    everything = json.loads(arena("show", record, "--all", "--json").stdout)
    whole = read(record.read_bytes())
    assert len(everything["events"]) == sum(1 for _ in whole.events())
    assert len(everything["inputs"]) == len(whole.entries) - len(everything["events"])
    assert everything["footer"]["counts"] == (whole.footer and whole.footer.counts)


def test_verify(record: Path, tmp_path: Path) -> None:
    result = arena("verify", record)
    assert result.exit_code == 0
    events = sum(1 for _ in read(record.read_bytes()).events())
    assert result.stdout == f"1 record, {events} events: all verify\n"
    assert json.loads(arena("verify", record, "--json").stdout) == [
        {"file": str(record), "ok": True, "events": events, "first_bad": None, "reason": ""}
    ]
    nested = tmp_path / "more" / "deep"
    nested.mkdir(parents=True)
    (nested / "k.arena").write_bytes(make("kuhn"))
    (nested / "notes.txt").write_text("no record")
    result = arena("verify", tmp_path, record, "--json")
    assert [Path(row["file"]).name for row in json.loads(result.stdout)] == ["k.arena", "w.arena"]


def test_verify_exits_3_and_names_the_first_bad_event(record: Path, tmp_path: Path) -> None:
    data = bytearray(record.read_bytes())
    data[len(data) // 2] ^= 4
    bad = tmp_path / "bad.arena"
    bad.write_bytes(data)
    damage = read(bytes(data)).damage
    assert damage is not None
    result = arena("verify", record, bad, "--json")
    assert result.exit_code == 3
    good_row, bad_row = json.loads(result.stdout)
    assert good_row["ok"] and not bad_row["ok"]
    assert bad_row["first_bad"] == damage.event and bad_row["reason"] == damage.reason
    result = arena("verify", record, bad)
    assert result.exit_code == 3
    first, last = result.stdout.splitlines()
    assert first == f"bad at event {damage.event}: {bad}: {damage.reason}"
    assert last.endswith("1 not ok")


@pytest.mark.parametrize("data", [b"", b"not a record", b"\xc4\xff"])
def test_what_is_no_record_does_not_verify_and_is_bad_input_elsewhere(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arena"
    path.write_bytes(data)
    result = arena("verify", path, "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)[0]["first_bad"] == 0
    for args in (("show", path), ("export", path, "--format", "text"), ("diff", path, path)):
        assert "no arena record" in refused(*args)


def test_a_record_under_other_rules(tmp_path: Path) -> None:
    path = tmp_path / "x.arena"
    head = header()
    made, end = entries(head)
    path.write_bytes(encode(replace(head, rules="0.0"), made, end))
    result = arena("verify", path, "--json")
    assert result.exit_code == 3
    (row,) = json.loads(result.stdout)
    assert row["first_bad"] is None and "recorded under kuhn rules 0.0" in row["reason"]
    assert arena("show", path).exit_code == 0, "it can be looked at all the same"
    path.write_bytes(seal([pack(["h", {"schema": 99}])]))
    assert "upgrade evoke-arena" in refused("show", path)


def test_export(record: Path, tmp_path: Path) -> None:
    whole = read(record.read_bytes())
    assert arena("export", record, "--format", "text").stdout == to_text(whole, "all")
    assert arena("export", record, "--format", "jsonl", "--seat", 1).stdout.splitlines() == list(
        to_jsonl(whole, 1)
    )
    out = tmp_path / "page.html"
    result = arena("export", record, "--format", "html", "--public", "--out", out)
    assert result.stdout == f"{out}: html, as seen by the public\n"
    assert out.read_text(encoding="utf-8") == to_html(whole, "public")


def test_an_export_to_a_dash_goes_to_stdout(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert arena("export", record, "--format", "text", "--out", "-").stdout == to_text(
        read(record.read_bytes()), "all"
    )
    assert [path.name for path in tmp_path.iterdir()] == [record.name]


def test_an_export_never_takes_the_place_of_a_record(record: Path, tmp_path: Path) -> None:
    damaged, newer = tmp_path / "damaged.arena", tmp_path / "newer.arena"
    damaged.write_bytes(record.read_bytes()[:-100])
    newer.write_bytes(seal([pack(["h", {"schema": 99}])]))
    for out in (record, damaged, newer):
        before = out.read_bytes()
        result = arena("export", record, "--format", "text", "--out", out)
        assert result.exit_code == 1
        assert (
            result.stderr == f"Error: {out}: cannot write the export: a record is there; give another --out\n"
        )
        assert out.read_bytes() == before


def test_an_export_replaces_an_older_one(record: Path, tmp_path: Path) -> None:
    out, link = tmp_path / "page.html", tmp_path / "link.html"
    out.write_text("older")
    link.symlink_to(out)
    assert arena("export", record, "--format", "html", "--out", link).exit_code == 0
    assert link.is_symlink() and out.read_text(encoding="utf-8") == to_html(read(record.read_bytes()), "all")
    assert {path.name for path in tmp_path.iterdir()} == {record.name, out.name, link.name}


def test_an_export_that_the_disk_refuses_leaves_the_older_one(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    out.write_text("older")
    full = OSError(errno.ENOSPC, "No space left on device")

    def half(self: Path, text: str, **_: object) -> int:
        self.write_bytes(text.encode()[:100])
        raise full

    monkeypatch.setattr(Path, "write_text", half)
    result = arena("export", record, "--format", "html", "--out", out)
    assert result.exit_code == 1 and "No space left on device" in result.stderr
    assert out.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {record.name, out.name}


def test_export_of_a_record_that_was_cut_short_says_so(record: Path) -> None:
    record.write_bytes(record.read_bytes()[:-50])
    result = arena("export", record, "--format", "jsonl")
    assert result.exit_code == 0
    assert "cut short" in result.stderr and json.loads(result.stdout.splitlines()[-1])["truncated"] is True


def test_diff(record: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.arena"
    same.write_bytes(record.read_bytes())
    assert arena("diff", record, same).exit_code == 0
    assert json.loads(arena("diff", record, same, "--json").stdout) == {
        "same": True,
        "event": None,
        "a": None,
        "b": None,
        "header": [],
    }
    other = tmp_path / "other.arena"
    head = header("werewolf", seats=6, seed=4)
    other.write_bytes(encode(head, *entries(head)))
    result = arena("diff", record, other, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    first, second = list(read(record.read_bytes()).events()), list(read(other.read_bytes()).events())
    at = next(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert found["event"] == at and found["header"] == ["seed"]
    assert (found["a"]["data"], found["b"]["data"]) == (first[at].data, second[at].data)
    told = arena("diff", record, other)
    assert told.exit_code == 1 and f"event {at} is the first that differs" in told.stdout
    cut = tmp_path / "cut.arena"
    cut.write_bytes(record.read_bytes()[:-800])
    kept = sum(1 for _ in read(cut.read_bytes()).events())
    found = json.loads(arena("diff", record, cut, "--json").stdout)
    assert found["event"] == kept and found["b"] is None and found["a"]["kind"] == first[kept].kind
    damage = read(cut.read_bytes()).damage
    assert damage is not None
    told = arena("diff", record, cut)
    assert f"  b: (no event: {damage.reason})\n" in told.stdout
    assert told.stderr == f"note: {cut}: event {kept}: {damage.reason}\n"


def test_who_played_is_no_event(tmp_path: Path) -> None:
    head = header()
    made, end = entries(head)
    a, b = tmp_path / "a.arena", tmp_path / "b.arena"
    a.write_bytes(encode(head, made, end))
    b.write_bytes(encode(replace(head, match="other"), made, end))
    result = arena("diff", a, b)
    assert result.exit_code == 0
    assert result.stdout.startswith("header differs in: match\n")


def test_bad_input_gives_one_line(record: Path, tmp_path: Path) -> None:
    missing, empty = tmp_path / "none.arena", tmp_path / "empty"
    empty.mkdir()
    for command in (("show",), ("verify",), ("export", "--format", "text"), ("diff", record)):
        assert f"{missing}: cannot read the record: No such file" in refused(*command, missing)
    assert "holds no record" in refused("verify", empty)
    assert "Is a directory" in refused("show", empty)
    assert "this match has seats 0 to 5" in refused("show", record, "--seat", 6)
    assert "got -1" in refused("export", record, "--format", "html", "--seat", -1)
    assert "this match has plies 0 to" in refused("show", record, "--ply", 9999)
    assert "got -1" in refused("show", record, "--ply", -1)
    assert "give one of --seat N, --public and --all" in refused("show", record, "--all", "--seat", 1)
    assert "jsonl" in refused("export", record, "--format", "pdf")
    assert "--format" in refused("export", record)
    assert "FILE" in refused("verify")


def test_an_export_that_cannot_be_written(record: Path, tmp_path: Path) -> None:
    result = arena("export", record, "--format", "html", "--out", tmp_path / "no" / "page.html")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "cannot write the export: No such file or directory" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_export_to_a_full_disk(record: Path) -> None:
    result = arena("export", record, "--format", "text", "--out", "/dev/full")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: /dev/full: cannot write the export: No space left on device\n",
    )


def test_a_reader_that_leaves_early_is_no_error(record: Path) -> None:
    """The pipe of `arena replay export … | head -1`, for real."""
    code = "from arena.cli.main import cli; cli()"
    command = f'"{sys.executable}" -c "{code}" replay export "{record}" --format jsonl | head -n 1'
    root = Path(__file__).parents[3]
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=root, check=False)
    assert json.loads(done.stdout)["type"] == "header"
    assert "Traceback" not in done.stderr
