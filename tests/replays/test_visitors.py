"""One walk, many readings; and who sees what."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.base import EVERYONE, RECORD, Event, Game, View
from games.referee import REFEREE_KINDS, Input
from games.registry import load_game
from replays.record import Footer, Header
from replays.tables import Table, read_table
from replays.visitors import OMNISCIENT, PUBLIC, Counts, Visitor, sentence, visible, walk
from tests.replays.recording import encode, entries, forge, header, make, read
from tests.replays.recording import referee as new_referee

SEATS = {"kuhn": 2, "avalon": 7, "werewolf": 7}


class Log(Visitor):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def begin(self, header: Header) -> None:
        self.calls.append(header)

    def input(self, given: Input, ply: int) -> None:
        self.calls.append((given, ply))

    def event(self, event: Event, index: int) -> None:
        self.calls.append((event, index))

    def end(self, footer: Footer | None) -> None:
        self.calls.append(footer)

    def result(self) -> list[Any]:
        return self.calls


@pytest.mark.parametrize("game", SEATS)
def test_the_walk_gives_every_entry_in_order_with_its_number_and_the_open_ply(game: str) -> None:
    head = header(game, seats=SEATS[game])
    made, end = entries(head, messy=True)
    record = read(encode(head, made, end))
    first, *middle, last = walk(record, Log())
    assert first == head and last == record.footer
    assert [entry for entry, _ in middle] == made
    events = [number for entry, number in middle if isinstance(entry, Event)]
    assert events == list(range(len(events)))
    table = new_referee(head)
    for entry, ply in middle:
        if isinstance(entry, Input):
            open_ply = table.ply
            told = table.feed(entry)
            beside = entry.failure == "forfeit" or [e[0] for e in told[1:2]] == ["late"]
            assert ply <= open_ply if beside else ply == open_ply == entry.ply


@pytest.mark.parametrize("game", SEATS)
def test_a_walk_before_a_ply_is_the_walk_of_a_record_cut_there(game: str) -> None:
    head = header(game, seats=SEATS[game])
    made, _ = entries(head)
    record = read(encode(head, made, None))
    for ply in range(walk(record, Counts())["plies"] + 1):
        *calls, last = walk(record, Log(), before_ply=ply)
        cut = next((at for at, e in enumerate(made) if isinstance(e, Input) and e.ply == ply), len(made))
        assert [entry for entry, _ in calls[1:]] == made[:cut] and last is None


def test_a_visitor_may_leave_everything_out() -> None:
    assert walk(read(make("kuhn", messy=True)), Visitor()) is None


def test_counts() -> None:
    head = header("werewolf", seats=6)
    made, end = entries(head, messy=True)
    counted = walk(read(encode(head, made, end)), Counts())
    assert counted["events"] == Counter(e.kind for e in made if isinstance(e, Event))
    given_ = [e for e in made if isinstance(e, Input)]
    assert counted["inputs"] == len(given_)
    assert counted["failures"] == Counter(e.failure for e in given_ if e.failure)
    assert counted["plies"] > 5


@given(st.none() | st.lists(st.integers(0, 9), max_size=4).map(tuple), st.integers(0, 9))
def test_who_sees_what(audience: tuple[int, ...] | None, seat: int) -> None:
    event = Event("x", {}, audience)
    assert visible(event, OMNISCIENT)
    assert visible(event, PUBLIC) == (audience is EVERYONE)
    assert visible(event, seat) == (audience is EVERYONE or seat in (audience or ()))
    assert not visible(Event("x", {}, RECORD), seat)


@pytest.mark.parametrize("game", SEATS)
def test_every_event_has_a_sentence_of_one_line(game: str) -> None:
    rules = load_game(game)
    kinds = set()
    for seed in range(30):
        for event in read(make(game, seats=SEATS[game], seed=seed, messy=True)).events():
            told = sentence(rules, event)
            assert told and "\n" not in told and not told.startswith("("), event
            kinds.add(event.kind)
    assert kinds >= REFEREE_KINDS - {"forfeit"} and "chance" in kinds


HOSTILE = ["\n", "\x1b[31m", "\u202e", "</script>", "<agent:Moderator>", "\u2028"]


@pytest.mark.parametrize("game", SEATS)
@pytest.mark.parametrize(
    "kind", ["", "vote", "votes", "end", "speech", "role", "dawn", "rejected", "chance", "\n\x1b"]
)
@pytest.mark.parametrize(
    "data", [{}, {"seat": "x" * 999}, {"seat": HOSTILE[0]}, {"text": 5}, {"votes": [[[]]]}]
)
def test_events_that_no_rules_emitted_still_have_a_safe_line(
    game: str, kind: str, data: dict[str, Any]
) -> None:
    told = sentence(load_game(game), Event(kind, data))
    assert told.isprintable() and len(told) < 1500


@pytest.mark.parametrize("text", HOSTILE)
def test_what_an_agent_said_stays_inside_its_quotes(text: str) -> None:
    event = Event("rejected", {"seat": 0, "failure": "illegal", "reason": text, "attempt": 1}, (0,))
    told = sentence(load_game("kuhn"), event)
    assert told.isprintable() and told.count("\n") == 0
    assert "<" not in told and "\u202e" not in told


@pytest.mark.parametrize("game", SEATS)
def test_a_table_knows_what_its_view_knows_and_nothing_more(game: str) -> None:
    rules = load_game(game)
    record = read(make(game, seats=SEATS[game], seed=2))
    for perspective in (OMNISCIENT, PUBLIC, *range(SEATS[game])):
        table = Table(rules, perspective)
        seen: dict[str, Any] = {}
        view: View = rules.view(perspective if isinstance(perspective, int) else None)
        for event in record.events():
            changed = table.update(event)
            if visible(event, perspective):
                view.update(event)
            else:
                assert changed == {}
            seen = {name: value for name, value in {**seen, **changed}.items() if value is not None}
            if seen:
                assert seen == table.facts == read_table(view)
        if perspective == OMNISCIENT:
            outcome = record.footer and record.footer.outcome
            assert outcome is not None and seen["returns"] == list(outcome.returns)
            if "roles" in seen:
                assert tuple(seen["roles"].values()) == outcome.roles


def test_a_public_table_has_no_hidden_role_before_it_is_made_public() -> None:
    record = read(make("avalon", seats=7, seed=2))
    table = Table(load_game("avalon"), PUBLIC)
    for event in list(record.events())[:-1]:
        table.update(event)
        assert "roles" not in table.facts
    assert table.facts["score"] and table.facts["stage"].startswith("Quest")


def test_a_table_outlives_events_that_its_game_cannot_fold() -> None:
    rules: Game = load_game("werewolf")
    data = make("werewolf", seats=6)
    made = read(data).entries
    record = read(forge(data, [*made[:8], Event("dawn", {"dead": "nonsense"}), *made[8:]]))
    table = Table(rules, OMNISCIENT)
    for event in record.events():
        table.update(event)
    assert "roles" in table.facts
