"""Spectators: who sees what, when, and that nobody waits for them."""

import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.clocks import TurnClock
from arena.errors import RequestRefused
from arena.hub import Hub
from arena.watcher import MatchInfo, Watcher, allowed
from clients.protocol.codec import JSON, MAX_BATCH, MSGPACK, decode
from clients.protocol.messages import Error, Frames, Snapshot
from games.base import Event
from games.referee import Entry, Input, Referee
from games.registry import load_game
from replays.export import addressed
from replays.record import Header, Record, SeatInfo
from replays.visitors import Perspective, visible

SECRET = "a thought that nobody at the table may know"
PERSPECTIVES: list[Perspective] = ["public", 0, 3, "all"]


def played(game: str = "avalon", *, seats: int = 5, seed: int = 1) -> list[Entry]:
    """Return the entries of a whole match of random moves, every input with a thought."""
    rng = random.Random(seed)
    referee = Referee(load_game(game).new(seed=seed, seats=seats))
    entries: list[Entry] = list(referee.opening())
    while turns := referee.turns():
        for seat, turn in turns.items():
            action = turn.space.sample(rng)
            entries += referee.feed(Input(seat, turn.ply, action, thought=SECRET, trace={"tokens": [b"x"]}))
    return entries


MATCH = played()
INFO = MatchInfo("m1", "avalon", "1", {}, ("a", "b\x1b[31m", "c", "d", "e"))


class Time:
    """A clock with timers that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def call_later(self, delay: float, function: Callable[[], None]) -> None:
        self._timers.append((self.now + delay, function))

    def move(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self._timers if timer[0] <= end]:
            first = min(due, key=lambda timer: timer[0])
            self._timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


def hub(time: Time | None = None, **more: Any) -> Hub:
    time = time or Time()
    return Hub(clock=time, call_later=time.call_later, **more)


def asks(perspective: Perspective) -> dict[str, Any]:
    if isinstance(perspective, int):
        return {"perspective": "seat", "seat": perspective, "may_see": {perspective}}
    return {"perspective": perspective, "may_see": {"all"} if perspective == "all" else ()}


def drain(watcher: Watcher, *, limit_bytes: int = 10**6, subprotocol: str = MSGPACK) -> list[Any]:
    found = []
    while frames := watcher.frames(limit_bytes=limit_bytes):
        found += [decode(frame, sender="server", subprotocol=subprotocol) for frame in frames]
    return found


def rows_of(messages: list[Any]) -> list[list[Any]]:
    """Return the entries of the frames after the last snapshot, checking that none is missing or doubled."""
    rows: list[list[Any]] = []
    for message in messages:
        if isinstance(message, Snapshot):
            rows = []
        elif isinstance(message, Frames):
            assert message.first == len(rows)
            rows += message.entries
    return rows


def expected(entries: list[Entry], perspective: Perspective) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for entry in entries:
        if isinstance(entry, Event):
            if visible(entry, perspective):
                rows.append(["e", entry.kind, entry.data, addressed(entry, perspective)])
        elif perspective == "all":
            action = list(entry.action) if isinstance(entry.action, tuple) else entry.action
            rows.append(["i", entry.seat, entry.ply, action, None, "", SECRET])
    return json.loads(json.dumps(rows))


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.sampled_from(PERSPECTIVES),
    st.sampled_from([1, 300, 5000, 10**6]),
    st.sampled_from([MSGPACK, JSON]),
    st.integers(0, len(MATCH)),
)
@settings(max_examples=60, deadline=None)
def test_every_watcher_gets_exactly_what_its_perspective_sees(
    pieces: list[int], perspective: Perspective, limit: int, subprotocol: str, joined: int
) -> None:
    shown = hub()
    shown.open(INFO)
    watcher, got, at = None, [], 0
    while at < len(MATCH):
        if watcher is None and at >= joined:
            watcher = shown.watch("m1", **asks(perspective), subprotocol=subprotocol)
        step = pieces[at % len(pieces)]
        shown.publish("m1", MATCH[at : at + step])
        at += step
        if watcher is not None:
            got += drain(watcher, limit_bytes=limit, subprotocol=subprotocol)
    watcher = watcher or shown.watch("m1", **asks(perspective), subprotocol=subprotocol)
    shown.close("m1")
    got += drain(watcher, limit_bytes=limit, subprotocol=subprotocol)
    assert isinstance(got[0], Snapshot) and not any(isinstance(m, Snapshot) for m in got[1:])
    assert rows_of(got) == expected(MATCH, perspective)
    assert [m.over for m in got[1:]] == [False] * (len(got) - 2) + [True]
    assert watcher.ended and shown.watchers == 0


def test_the_public_view_holds_nothing_hidden() -> None:
    shown = hub()
    shown.open(INFO)
    watcher = shown.watch("m1")
    shown.publish("m1", MATCH[:-1])
    frames = watcher.frames(limit_bytes=10**6)
    raw = b"".join(frame if isinstance(frame, bytes) else frame.encode() for frame in frames)
    assert SECRET.encode() not in raw and b"chance" not in raw and b"tokens" not in raw
    snapshot = decode(frames[0], sender="server", subprotocol=MSGPACK)
    assert isinstance(snapshot, Snapshot)
    assert snapshot.names[1] == "b\\u001b[31m", "names are cleaned"
    assert snapshot.allowed == ["public"] and snapshot.live
    assert snapshot.entries == len(expected(MATCH[:-1], "public"))


def test_a_row_is_encoded_once_for_all_who_read_it() -> None:
    shown = hub()
    shown.open(INFO)
    watchers = [shown.watch("m1") for _ in range(3)]
    for watcher in watchers:
        drain(watcher)
    shown.publish("m1", MATCH[:60])
    first, second, third = (watcher.frames() for watcher in watchers)
    assert first[0] is second[0] is third[0]


def test_a_watcher_costs_nothing_while_it_does_not_read() -> None:
    def peak(watchers: int) -> int:
        shown = hub()
        shown.open(INFO)
        kept = [shown.watch("m1") for _ in range(watchers)]
        for watcher in kept:
            watcher.frames()
        tracemalloc.start()
        for _ in range(30):
            shown.publish("m1", MATCH[:60])
            kept[0].frames()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return size

    peak(1)
    assert peak(300) < peak(1) * 1.1 + 10_000


def test_who_falls_behind_starts_over_from_a_snapshot_and_loses_nothing() -> None:
    shown = hub(max_behind=50)
    shown.open(INFO)
    slow, quick = shown.watch("m1"), shown.watch("m1")
    drain(slow)
    got = drain(quick)
    copies = 6
    for _ in range(copies):
        shown.publish("m1", MATCH[:60])
        got += drain(quick)
    assert sum(isinstance(message, Snapshot) for message in got) == 1, "who reads is not touched"
    behind = drain(slow, limit_bytes=400)
    assert isinstance(behind[0], Snapshot) and behind[0].dropped
    assert rows_of(behind) == expected(MATCH[:60] * copies, "public")
    assert shown.drops == 1


def test_a_newcomer_to_a_long_match_is_behind_and_yet_not_dropped() -> None:
    shown = hub(max_behind=10)
    shown.open(INFO, entries=MATCH[:-1])
    newcomer = shown.watch("m1")
    got = []
    for _ in range(3):
        got += [decode(f, sender="server", subprotocol=MSGPACK) for f in newcomer.frames(limit_bytes=1)]
        shown.publish("m1", MATCH[:5])
    got += drain(newcomer)
    assert sum(isinstance(message, Snapshot) for message in got) == 1
    assert rows_of(got) == expected(MATCH[:-1] + MATCH[:5] * 3, "public")


def test_long_histories_come_in_bounded_pieces() -> None:
    shown = hub()
    shown.open(INFO, entries=MATCH * 20)
    watcher = shown.watch("m1", perspective="all", may_see={"all"})
    got = drain(watcher)
    assert len(got) > 5 and all(len(message.entries) <= MAX_BATCH for message in got[1:])
    assert max(len(f) for f in shown.watch("m1").frames(limit_bytes=10**7)) < 200_000


def test_nothing_is_seen_before_its_time_and_the_end_is_the_last_entry() -> None:
    time = Time()
    shown = hub(time)
    shown.open(INFO, delay_s=10)
    watcher = shown.watch("m1")
    woken: list[float] = []
    watcher.on_more = lambda: woken.append(time.now)
    assert drain(watcher)[0].delay_s == 10
    shown.publish("m1", MATCH[:60])
    time.move(4)
    shown.publish("m1", MATCH[60:])
    shown.close("m1")
    time.move(5.9)
    assert drain(watcher) == [] and woken == []
    with pytest.raises(RequestRefused) as caught:
        shown.watch("m1", perspective="all")
    assert caught.value.wire == "forbidden", "the match is over, but not for those who watch it later"
    time.move(0.1)
    assert rows_of(drain(watcher)) == expected(MATCH[:60], "public")
    assert shown.watch("m1").frames() and "m1" in shown
    time.move(3.9)
    assert not watcher.ended
    time.move(0.1)
    got = drain(watcher)
    assert got[-1].over and got[-1].first + len(got[-1].entries) == len(expected(MATCH, "public"))
    assert woken[0] == 10.0 and woken[-1] == 14.0
    assert rows_of(drain(shown.watch("m1", perspective="all"))) == expected(MATCH, "all")


def test_a_match_that_ends_after_its_last_entry_says_so_once() -> None:
    shown = hub()
    shown.open(INFO)
    watcher = shown.watch("m1")
    shown.publish("m1", MATCH)
    before = drain(watcher)
    assert not before[-1].over
    shown.close("m1")
    (end,) = drain(watcher)
    assert end.over and end.entries == [] and end.first == len(rows_of(before))
    assert drain(watcher) == []


@pytest.mark.parametrize(
    ("may_see", "refused"),
    [((), ["seat", "all"]), ({1}, ["all"]), ({"all"}, [])],
)
def test_who_may_see_what_before_and_after_the_end(may_see: Any, refused: list[str]) -> None:
    shown = hub()
    shown.open(INFO, entries=MATCH)

    def tries() -> list[str]:
        bad = []
        for perspective in ("public", "seat", "all"):
            seat = 1 if perspective == "seat" else None
            try:
                shown.watch("m1", perspective=perspective, seat=seat, may_see=may_see)
            except RequestRefused as error:
                assert error.wire == "forbidden"
                bad.append(perspective)
        return bad

    assert tries() == refused
    assert [p for p in ("public", "seat", "all") if p not in allowed(may_see, over=False)] == refused
    if may_see == {1}:
        with pytest.raises(RequestRefused):
            shown.watch("m1", perspective="seat", seat=2, may_see=may_see)
    shown.close("m1")
    assert tries() == []


@pytest.mark.parametrize("wrong", [{"seat": 1}, {"perspective": "seat"}, {"perspective": "seat", "seat": 5}])
def test_a_seat_goes_with_its_perspective_and_must_be_there(wrong: dict[str, Any]) -> None:
    shown = hub()
    shown.open(INFO)
    with pytest.raises(RequestRefused) as caught:
        shown.watch("m1", **wrong, may_see={"all"})
    assert caught.value.wire == "bad_message"


class Shelf:
    """Finished records, handed out when the test says so."""

    def __init__(self, **records: Record | Exception) -> None:
        self.records = records
        self.asked: list[str] = []
        self._waiting: list[Callable[[], None]] = []

    def find(self, match: str) -> Record | None:
        self.asked.append(match)
        found = self.records.get(match)
        if isinstance(found, Exception):
            raise found
        return found

    def offload(self, function: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def later() -> None:
            try:
                result = function()
            except OSError as error:
                result = error
            done(result)

        self._waiting.append(later)

    def answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for function in waiting:
            function()


def record() -> Record:
    header = Header("avalon", "1", {}, 1, tuple(SeatInfo(name, "random") for name in "abcde"), 2, "old")
    return Record(header, MATCH)


def test_finished_matches_are_read_from_their_records_once() -> None:
    shelf = Shelf(old=record())
    shown = hub(find=shelf.find, offload=shelf.offload)
    woken = []
    watchers = [
        shown.watch("old", **asks(p), request_id=str(p), on_more=lambda p=p: woken.append(p))
        for p in PERSPECTIVES
    ]
    assert all(drain(watcher) == [] for watcher in watchers)
    shelf.answer()
    assert woken == PERSPECTIVES and shelf.asked == ["old"]
    for watcher, perspective in zip(watchers, PERSPECTIVES, strict=True):
        got = drain(watcher)
        assert (
            got[0].id == str(perspective) and not got[0].live and got[0].allowed == ["public", "seat", "all"]
        )
        assert rows_of(got) == expected(MATCH, perspective) and got[-1].over
    assert rows_of(drain(shown.watch("old"))) == expected(MATCH, "public"), "it is at hand now"
    assert shelf.asked == ["old"]


def test_a_match_that_is_not_there_is_answered_by_its_code() -> None:
    shelf = Shelf(bad=OSError("/secret/path"))
    shown = hub(find=shelf.find, offload=shelf.offload)
    unknown, failed = shown.watch("nope\n", request_id="q1"), shown.watch("bad", request_id="q2")
    gone = shown.watch("nope\n")
    gone.close()
    shelf.answer()
    (first,), (second,) = drain(unknown), drain(failed)
    assert isinstance(first, Error) and (first.code, first.id) == ("unknown_match", "q1")
    assert "\n" not in first.message
    assert isinstance(second, Error) and (second.code, second.id) == ("internal", "q2")
    assert "secret" not in second.message
    assert unknown.ended and failed.ended and drain(gone) == [] and shown.watchers == 0


def test_a_match_that_begins_while_its_record_is_looked_for_is_live() -> None:
    shelf = Shelf()
    shown = hub(find=shelf.find, offload=shelf.offload)
    watcher = shown.watch("m1")
    shown.open(INFO, entries=MATCH[:10])
    shelf.answer()
    assert drain(watcher)[0].live
    hidden = shown.watch("m1")
    assert drain(hidden)[0].live


def test_permissions_hold_for_matches_that_are_found_later() -> None:
    shelf = Shelf()
    shown = hub(find=shelf.find, offload=shelf.offload)
    watcher = shown.watch("m1", perspective="all")
    shown.open(INFO, entries=MATCH[:10])
    shelf.answer()
    (error,) = drain(watcher)
    assert error.code == "forbidden" and shown.watchers == 0


def test_an_abandoned_match_tells_its_watchers_why() -> None:
    shown = hub()
    shown.open(INFO, entries=MATCH[:10])
    watcher = shown.watch("m1", request_id="q")
    drain(watcher)
    shown.abandon("m1", wire="internal", reason="the match failed")
    (error,) = drain(watcher)
    assert (error.code, error.id) == ("internal", "q")
    assert watcher.ended and shown.watchers == 0 and "m1" not in shown


def test_watchers_are_limited_and_their_places_come_back() -> None:
    shown = hub(max_watchers=2)
    shown.open(INFO)
    first, _ = shown.watch("m1"), shown.watch("m1")
    with pytest.raises(RequestRefused) as caught:
        shown.watch("m1")
    assert caught.value.wire == "limit"
    first.close()
    first.close()
    assert shown.watch("m1") and shown.watchers == 2


def test_only_those_are_woken_who_see_something() -> None:
    shown = hub()
    shown.open(INFO)
    woken: list[str] = []
    public = shown.watch("m1", on_more=lambda: woken.append("public"))
    seat = shown.watch("m1", **asks(3), on_more=lambda: woken.append("seat"))
    drain(public), drain(seat)
    shown.publish("m1", [Event("role", {"role": "x"}, (3,))])
    assert woken == ["seat"]
    shown.publish("m1", [Event("say", {"text": "x"})])
    assert woken == ["seat", "public", "seat"] or woken == ["seat", "seat", "public"]


def test_clocks_go_with_the_newest_entries_and_run_down() -> None:
    time = Time()
    shown = hub(time)
    clocks = {2: TurnClock(90.0, 30.0)}
    shown.open(INFO, clocks=lambda: clocks)
    watcher, everything = shown.watch("m1"), shown.watch("m1", **asks("all"))
    shown.publish("m1", MATCH[:20])
    got = drain(watcher)
    assert got[-1].clocks == {"2": 30.0} and all(m.clocks is None for m in got[1:-1])
    assert drain(everything)[-1].clocks == {"2": 90.0}
    time.move(12)
    late = shown.watch("m1")
    assert drain(late)[-1].clocks == {"2": 18.0}
    clocks = {}
    shown.publish("m1", [Event("say", {"text": "x"})])
    (told,) = drain(watcher)
    assert told.clocks == {} and len(told.entries) == 1
    assert drain(watcher) == []
    time.move(40)
    assert drain(shown.watch("m1"))[-1].clocks == {}


def test_nothing_is_sent_for_a_clock_that_a_watcher_may_not_see() -> None:
    time = Time()
    shown = hub(time)
    clocks = {2: TurnClock(90.0, None), 4: TurnClock(80.0, 30.0)}
    shown.open(INFO, entries=MATCH[:20], clocks=lambda: clocks)
    eyes = {who: shown.watch("m1", **asks(who)) for who in ("public", 1, 2, "all")}
    seen = {who: drain(watcher)[-1].clocks for who, watcher in eyes.items()}
    assert seen == {
        "public": {"4": 30.0},
        1: {"4": 30.0},
        2: {"2": 90.0, "4": 30.0},
        "all": {"2": 90.0, "4": 80.0},
    }
    clocks = {4: TurnClock(80.0, 30.0)}
    shown.publish("m1", [Event("secret", {}, ())])
    seen = {who: [(m.entries, m.clocks) for m in drain(watcher)] for who, watcher in eyes.items()}
    assert seen["public"] == seen[1] == []
    assert seen[2] == [([], {"4": 30.0})]
    assert [clocks for _, clocks in seen["all"]] == [{"4": 80.0}]


def test_clocks_are_shown_as_late_as_the_entries_that_they_belong_to() -> None:
    time = Time()
    shown = hub(time)
    left = 30.0
    shown.open(INFO, delay_s=10, clocks=lambda: {2: TurnClock(left, left)})
    watcher = shown.watch("m1")
    shown.publish("m1", MATCH[:20])
    drain(watcher)
    left = 5.0
    time.move(10)
    assert drain(watcher)[-1].clocks == {"2": 30.0}
    late = shown.watch("m1")
    time.move(4)
    assert drain(late)[-1].clocks == {"2": 26.0}


def test_clocks_are_not_read_while_nobody_watches() -> None:
    shown = hub()
    read: list[int] = []
    shown.open(INFO, entries=MATCH[:20], clocks=lambda: read.append(1) or {2: TurnClock(1.0, 1.0)})
    shown.publish("m1", MATCH[20:30])
    assert not read
    assert drain(shown.watch("m1"))[-1].clocks == {"2": 1.0} and len(read) == 1


def test_values_that_an_encoding_cannot_hold_do_not_end_the_watching() -> None:
    deep: Any = 0
    for _ in range(60):
        deep = [deep]
    odd: list[Entry] = [
        Input(0, 0, {"n": 2**70, "raw": b"\x00\xff"}, thought="t"),  # type: ignore[arg-type]
        Event("say", {"text": "\ud800 alone", "n": 2**64, "deep": deep}),
    ]
    for subprotocol in (MSGPACK, JSON):
        shown = hub()
        shown.open(INFO, entries=odd)
        rows = rows_of(
            drain(shown.watch("m1", **asks("all"), subprotocol=subprotocol), subprotocol=subprotocol)
        )
        assert [row[0] for row in rows] == ["i", "e"]


def test_finished_matches_at_hand_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.hub.MAX_FINISHED_ENTRIES", 3 * len(MATCH))
    shown = hub()
    for number in range(10):
        shown.open(MatchInfo(f"m{number}", "avalon", "1", {}, tuple("abcde")), entries=MATCH)
        shown.close(f"m{number}")
    assert len(shown._finished) == 3 and shown.live() == []


def test_frames_are_what_the_messages_say_byte_for_byte_readable() -> None:
    shown = hub()
    shown.open(INFO, entries=MATCH[:30])
    frame = shown.watch("m1").frames(limit_bytes=10**6)[1]
    assert isinstance(frame, bytes)
    value = msgpack.unpackb(frame)
    assert set(value) == {"type", "match", "first", "entries", "over"}
    text = shown.watch("m1", subprotocol=JSON).frames(limit_bytes=10**6)[1]
    assert json.loads(text) == value
