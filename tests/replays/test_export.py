"""Exports: lossless where everything may be seen, and free of every hidden fact where not."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from games.base import Event
from games.errors import BadSeats, UnknownGame
from games.referee import Entry, Input
from replays.export import to_jsonl, to_text
from replays.export_html import to_html
from replays.record import Header, Record, SeatInfo
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible
from tests.replays.recording import encode, entries, footer, forge, header, make, read
from tests.replays.recording import referee as new_referee

SEATS = {"kuhn": 2, "avalon": 7, "werewolf": 8}
RECORDS = {game: read(make(game, seats=seats, seed=6, messy=True)) for game, seats in SEATS.items()}
EVIL_TEXT = (
    '</script><script>document.title="pwned"</script><img src=x onerror=alert(1)> & \u2028\u202e {{data}} "'
)


def chatty(text: str = EVIL_TEXT, *, seats: int = 6) -> Record:
    """Return a Werewolf record in which every speech and thought is `text`, and a name as well."""
    head = replace(header("werewolf", seats=seats), match=text)
    head = replace(head, seats=tuple(SeatInfo(f"{text}{seat}", text) for seat in range(seats)))
    table = new_referee(head)
    made: list[Entry] = list(table.opening())
    while turns := table.turns():
        for seat, turn in turns.items():
            action = text if turn.space.contains(text) else turn.space.default
            made += table.feed(Input(seat, turn.ply, action, thought=text))
    return read(encode(head, made, footer(table)))


# JSON lines


def unbyte(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            bytes.fromhex(value["bytes"])
            if value.keys() == {"bytes"}
            else {k: unbyte(v) for k, v in value.items()}
        )
    return [unbyte(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("game", SEATS)
def test_json_lines_hold_the_whole_record(game: str) -> None:
    record = RECORDS[game]
    rows = [json.loads(line) for line in to_jsonl(record)]
    assert (rows[0]["type"], rows[-1]["type"]) == ("header", "footer")
    assert Header.from_data(rows[0]) == record.header
    made: list[Entry] = []
    for row in rows[1:-1]:
        if row.pop("type") == "event":
            audience = row["audience"]
            made.append(Event(row["kind"], row["data"], None if audience is None else tuple(audience)))
        else:
            action = row["action"]
            made.append(Input(**{**row, "action": tuple(action) if isinstance(action, list) else action}))
    assert made == record.entries
    assert record.footer is not None
    assert encode(record.header, made, record.footer) == make(game, seats=SEATS[game], seed=6, messy=True)
    assert bytes.fromhex(rows[-1]["chain"]["bytes"]) == record.footer.chain


@pytest.mark.parametrize("game", SEATS)
@pytest.mark.parametrize("perspective", [PUBLIC, 0, 1])
def test_json_lines_of_a_perspective_hold_its_events_and_nothing_else(
    game: str, perspective: Perspective
) -> None:
    record = RECORDS[game]
    first, *rows, last = [json.loads(line) for line in to_jsonl(record, perspective)]
    seen = [event for event in record.events() if visible(event, perspective)]
    assert [(row["type"], row["kind"], row["data"]) for row in rows] == [
        ("event", e.kind, e.data) for e in seen
    ]
    assert [row["index"] for row in rows] == list(range(len(seen)))
    for row, event in zip(rows, seen, strict=True):
        assert row["audience"] == (None if event.audience is None else [perspective])
    assert "seed" not in first and first["seats"] == [{"name": seat.name} for seat in record.header.seats]
    assert last == {"type": "footer", "events": len(seen), "complete": True}


def test_a_record_that_was_cut_or_damaged_says_so_in_every_format() -> None:
    data = make("werewolf", seats=6)
    for broken, words in ((data[:-700], "cut short"), (data + b"x", "bytes follow")):
        record = read(broken)
        last = json.loads(list(to_jsonl(record))[-1])
        assert last["type"] == "damage" and words in last["reason"]
        assert json.loads(list(to_jsonl(record, PUBLIC))[-1])["complete"] is False
        assert ("cut short" if record.footer is None else words) in to_text(record)
        assert "The record" in page_data(to_html(record))["note"]


# text


@pytest.mark.parametrize("game", SEATS)
def test_text_has_a_line_for_each_event_that_is_seen(game: str) -> None:
    record = RECORDS[game]
    for perspective in (OMNISCIENT, PUBLIC, 0):
        lines = [line for line in to_text(record, perspective).splitlines() if re.match(r" *\d+  ", line)]
        assert len(lines) == sum(visible(event, perspective) for event in record.events())


def test_text_tells_thoughts_to_the_omniscient_alone() -> None:
    record = chatty("I am the WOLF")
    assert 'thinks "I am the WOLF"' in to_text(record)
    for perspective in (PUBLIC, *range(6)):
        assert "thinks" not in to_text(record, perspective)


def test_text_cannot_be_broken_by_what_players_say_or_are_called() -> None:
    record = chatty("\x1b[31m\nSeat 3 is a werewolf.\n    9  Day 1 dawns\u2028<agent:Moderator>")
    for perspective in (OMNISCIENT, PUBLIC):
        told = to_text(record, perspective)
        assert all(line.isprintable() for line in told.split("\n"))
        assert "<agent" not in told
        assert not any(line.startswith("    9  Day 1") for line in told.split("\n"))


# what must not be in an export for less than everything


@pytest.mark.parametrize("form", ["jsonl", "text", "html"])
def test_no_hidden_fact_is_in_a_public_export(form: str) -> None:
    """Two matches that differ in nothing the public saw give the same bytes."""
    head = replace(header("kuhn", seed=0), match="m")
    by_line: dict[str, set[str]] = {}
    hidden = 0
    for seed in range(12):
        made, end = entries(replace(head, seed=seed), seed=1)
        record = read(encode(replace(head, seed=seed), made, end))
        public = json.dumps([e.data for e in record.events() if e.audience is None])
        exported = export(record, form, PUBLIC)
        by_line.setdefault(public, set()).add(exported)
        hidden += 1
    assert hidden > len(by_line), "some of the matches look the same to the public"
    assert all(len(found) == 1 for found in by_line.values())


def export(record: Record, form: str, perspective: Perspective) -> str:
    if form == "jsonl":
        return "\n".join(to_jsonl(record, perspective))
    return to_text(record, perspective) if form == "text" else to_html(record, perspective)


@pytest.mark.parametrize("form", ["jsonl", "text", "html"])
def test_private_words_and_thoughts_are_only_where_they_may_be(form: str) -> None:
    record = read(make("werewolf", seats=8, seed=6))
    made = [
        entry._replace(data={**entry.data, "text": "HOWL"})
        if isinstance(entry, Event) and entry.kind == "wolf_talk"
        else entry._replace(thought="PONDER", trace={"ids": "TRACE"})
        if isinstance(entry, Input)
        else entry
        for entry in record.entries
    ]
    record = read(forge(make("werewolf", seats=8, seed=6), made))
    wolves = {s for e in made if isinstance(e, Event) and e.kind == "wolf_talk" for s in e.audience or ()}
    assert wolves
    assert "PONDER" in export(record, form, OMNISCIENT) and "HOWL" in export(record, form, OMNISCIENT)
    for perspective in (PUBLIC, *range(8)):
        told = export(record, form, perspective)
        assert "PONDER" not in told and "TRACE" not in told
        assert ("HOWL" in told) == (perspective in wolves)


@pytest.mark.parametrize("form", ["jsonl", "text", "html"])
def test_a_seat_that_is_not_there(form: str) -> None:
    for seat in (-1, 2, 99):
        with pytest.raises(BadSeats, match="seats 0 to 1"):
            export(RECORDS["kuhn"], form, seat)


def test_a_game_that_is_not_installed_can_still_be_exported_as_data() -> None:
    record = replace(RECORDS["kuhn"], header=replace(RECORDS["kuhn"].header, game="none"))
    assert list(to_jsonl(record))
    for form in ("text", "html"):
        with pytest.raises(UnknownGame):
            export(record, form, OMNISCIENT)


# the page


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.by_id: dict[str, str] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in ("meta", "input", "link", "img"):
            self._open.append((tag, found.get("id")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.text.setdefault(self._open[-1][0], []).append(data)
        for _, name in self._open:
            if name is not None:
                self.by_id[name] = self.by_id.get(name, "") + data


def page_data(page: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Parsed(page).by_id["data"])
    return data


def sha(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("game", SEATS)
def test_the_page_is_self_contained_and_its_policy_allows_its_own_script_and_style_alone(game: str) -> None:
    page = to_html(RECORDS[game])
    parsed = Parsed(page)
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    (style,) = parsed.text["style"]
    data, script = parsed.text["script"]
    assert json.loads(data)
    assert policy == (
        f"default-src 'none'; script-src {sha(script)}; style-src {sha(style)}; base-uri 'none'; form-action 'none'"
    )
    assert not {"src", "href", "action", "style", "onclick"} & {
        name for _, attrs in parsed.tags for name in attrs
    }
    assert "://" not in page and "@import" not in page and "url(" not in page
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", page)


def test_nothing_that_was_said_can_leave_the_data() -> None:
    page = to_html(chatty())
    parsed = Parsed(page)
    assert [tag for tag, _ in parsed.tags].count("script") == 2
    assert "img" not in [tag for tag, _ in parsed.tags]
    (raw,) = [text for text in parsed.text["script"] if text.startswith("{")]
    assert not re.search(r"[<>&\u2028\u2029]", raw) and raw.isascii()
    words = {item["words"] for item in json.loads(raw)["items"] if item["words"]}
    assert words and all(
        "</script>" in said and "{{data}}" in said and said.replace("\n", "").isprintable() for said in words
    )
    assert html.unescape(parsed.text["title"][0]).isprintable()


@pytest.mark.parametrize("game", SEATS)
def test_the_data_hold_each_event_with_its_audience_and_what_it_changes(game: str) -> None:
    record = RECORDS[game]
    data = page_data(to_html(record))
    events = [item for item in data["items"] if "n" in item]
    assert [item["to"] for item in events] == [
        e.audience if e.audience is None else list(e.audience) for e in record.events()
    ]
    assert data["views"] == [OMNISCIENT, PUBLIC, *range(SEATS[game])]
    assert events[-1]["key"] == "end" or "end" in {item.get("key") for item in events}
    outcome = record.footer and record.footer.outcome
    for view in data["views"]:
        facts: dict[str, Any] = {}
        for at, changed in data["changes"][str(view)]:
            assert 0 <= at < len(data["items"])
            facts.update(changed)
        assert outcome is not None and facts["returns"] == list(outcome.returns)


def test_a_limited_page_offers_only_what_it_holds() -> None:
    record = RECORDS["avalon"]
    assert page_data(to_html(record, 3))["views"] == [3, PUBLIC]
    data = page_data(to_html(record, PUBLIC))
    assert data["views"] == [PUBLIC] and data["seed"] is None and data["specs"] == []
    assert [item["n"] for item in data["items"]] == list(range(len(data["items"])))
    assert all(item["to"] is None for item in data["items"])
    before_end = [changed for _, changed in data["changes"][PUBLIC]][:-1]
    assert not any("roles" in changed for changed in before_end)


# the page in a real browser

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def browse(page: str, *, at: str = "", script: str = "", ms: int = 2000) -> Parsed:
    """Open the page at a place in a browser, run `script` in it as well, and return what it became."""
    assert CHROMIUM is not None
    if script:
        page = page.replace("script-src ", f"script-src {sha(script)} ", 1)
        page = page.replace("</body>", f"<script>{script}</script></body>")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        options = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,800"
        )
        done = subprocess.run(
            [
                CHROMIUM,
                *options.split(),
                f"--user-data-dir={folder}/profile",
                f"--virtual-time-budget={ms}",
                "--dump-dom",
                f"file://{path}{at}",
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "LANG": "C.UTF-8"},
            check=True,
        )
    return Parsed(done.stdout)


def body(parsed: Parsed) -> dict[str, str | None]:
    return next(attrs for tag, attrs in parsed.tags if tag == "body")


def rows(parsed: Parsed) -> tuple[list[int], int | None]:
    """Return the items shown in the feed, and the one that is marked as now."""
    shown = [a for t, a in parsed.tags if t == "li" and "data-item" in a and "hidden" not in a]
    now = [int(str(a["data-item"])) for a in shown if a.get("aria-current") == "true"]
    return [int(str(a["data-item"])) for a in shown], now[0] if now else None


def keys(*pressed: str) -> str:
    events = [{"key": key.removeprefix("shift+"), "shiftKey": key.startswith("shift+")} for key in pressed]
    return (
        f"for (const one of {json.dumps(events)}) "
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {...one, bubbles: true, cancelable: true}));"
    )


@needs_browser
@pytest.mark.parametrize("view", ["all", "public", "1"])
def test_the_browser_shows_a_moment_as_a_perspective_saw_it(view: str) -> None:
    record = RECORDS["werewolf"]
    page = to_html(record)
    items = page_data(page)["items"]
    at = next(i for i in range(len(items) * 2 // 3, len(items)) if "n" in items[i])
    assert items[at]["n"] < at, "there are thoughts before it, which have no number"
    parsed = browse(page, at=f"#event={items[at]['n']}&view={view}")
    state = body(parsed)
    assert (state["data-cursor"], state["data-view"], state["data-playing"]) == (str(at), view, "false")
    seen = [
        i
        for i, item in enumerate(items[: at + 1])
        if view == "all" or item["to"] is None or (view != "public" and int(view) in item["to"])
    ]
    assert rows(parsed) == (seen, seen[-1])
    told = parsed.by_id["items"]
    for i in seen:
        assert items[i]["text"] in told
    facts: dict[str, Any] = {}
    for i, changed in page_data(page)["changes"][view]:
        if i <= at:
            facts.update(changed)
    cards = [a for t, a in parsed.tags if t == "li" and "data-seat" in a]
    assert [seat for seat, card in enumerate(cards) if "out" in str(card["class"]).split()] == facts.get(
        "out", []
    )
    assert parsed.by_id["stage"] == facts["stage"]


@needs_browser
def test_the_browser_is_driven_by_keys() -> None:
    page = to_html(RECORDS["avalon"])
    items = page_data(page)["items"]
    public = [i for i, item in enumerate(items) if item["to"] is None]
    marked = [i for i, item in enumerate(items) if item.get("key")]
    for pressed, cursor, view in (
        (["ArrowRight", "ArrowRight", "ArrowLeft"], 1, "all"),
        (["End"], len(items) - 1, "all"),
        (["End", "Home"], 0, "all"),
        (["p", "Home", "ArrowRight", "ArrowRight"], [i for i in public if i > 0][1], "public"),
        (["shift+ArrowRight", "shift+ArrowRight"], marked[1], "all"),
        (["End", "shift+ArrowLeft"], max(i for i in marked if i < len(items) - 1), "all"),
        (["3", "v"], 0, "4"),
        (["9", "a"], 0, "all"),
    ):
        state = body(browse(page, script=keys(*pressed)))
        assert (state["data-cursor"], state["data-view"]) == (str(cursor), view), pressed


@needs_browser
def test_the_browser_plays_to_the_end_and_stops() -> None:
    page = to_html(RECORDS["kuhn"], PUBLIC)
    items = page_data(page)["items"]
    parsed = browse(page, script=keys("+", "+", "+", " "), ms=60_000)
    state = body(parsed)
    assert (state["data-cursor"], state["data-playing"]) == (str(len(items) - 1), "false")
    assert parsed.by_id["play"] == "Play"


@needs_browser
def test_the_browser_opens_its_help_and_the_keys_rest_while_it_is_open() -> None:
    parsed = browse(to_html(RECORDS["kuhn"]), script=keys("?", "End"))
    assert "open" in next(attrs for tag, attrs in parsed.tags if tag == "dialog")
    assert body(parsed)["data-cursor"] == "0"


@needs_browser
def test_speech_and_names_are_inert_in_the_browser() -> None:
    page = to_html(chatty())
    parsed = browse(page, at="#event=99999&view=all")
    assert "pwned" not in parsed.text["title"]
    tags = [tag for tag, _ in parsed.tags]
    assert "img" not in tags and tags.count("script") == 2
    assert "</script><script>" in parsed.by_id["items"]


@needs_browser
def test_a_strange_place_is_no_place() -> None:
    state = body(browse(to_html(RECORDS["kuhn"]), at="#event=-7&view=nobody&x=%3Cb%3E"))
    assert (state["data-cursor"], state["data-view"]) == ("0", "all")
