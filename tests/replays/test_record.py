"""Entries and headers as data, and what an agent's answer becomes when it is recorded."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.base import Event, Outcome
from games.referee import FAILURES, Input, Referee
from games.registry import load_game
from replays.codec import pack, unpack
from replays.record import Footer, Header, entry_from_data, entry_to_data, recordable
from tests.replays.recording import encode, entries, header, read
from tests.replays.test_codec import TEXT, VALUES

INPUTS = st.builds(
    Input,
    st.integers(0, 9),
    st.integers(-1, 99),
    st.none() | TEXT | st.tuples(TEXT, TEXT),
    st.none() | st.sampled_from(FAILURES),
    TEXT,
    st.none() | TEXT,
    st.none() | st.dictionaries(TEXT, VALUES, max_size=3),
)
EVENTS = st.builds(
    Event,
    TEXT,
    st.dictionaries(TEXT, VALUES, max_size=3),
    st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
)


@given(INPUTS | EVENTS)
def test_entries_read_back(entry: Input | Event) -> None:
    assert entry_from_data(unpack(pack(entry_to_data(entry)))) == entry


@given(INPUTS)
def test_an_input_has_one_form(given_: Input) -> None:
    row = entry_to_data(given_)
    for longer in ([*row, None], [*row, ""] if len(row) == 5 else [*row, None]):
        with pytest.raises(ValueError):
            entry_from_data(longer)


@pytest.mark.parametrize(
    "row",
    [
        None,
        "e",
        [],
        ["e"],
        ["e", "kind"],
        ["e", "kind", []],
        ["e", 1, {}],
        ["e", "kind", {}, None],
        ["e", "kind", {}, [0, "1"]],
        ["e", "kind", {}, [True]],
        ["e", "kind", {}, [0], 1],
        ["i", 0],
        ["i", True, 0, "a"],
        ["i", 0, 0.0, "a"],
        ["i", "0", 0, "a"],
        ["i", 0, 0, "a", 5],
        ["i", 0, 0, "a", None, None, "b"],
        ["i", 0, 0, "a", None, "", 1],
        ["i", 0, 0, "a", None, "", None, []],
        ["i", 0, 0, "a", None, "", None, {}, 1],
        ["x", 0, 0],
        [["e"], "kind", {}],
    ],
)
def test_what_is_no_entry_is_refused(row: object) -> None:
    with pytest.raises(ValueError):
        entry_from_data(row)


def test_the_header_reads_back_and_ignores_what_it_does_not_know() -> None:
    head = replace(header(), options={"a": [1, "b"]}, match="x")
    data = unpack(pack(head.to_data()))
    assert Header.from_data(data) == head
    data["later"] = 1
    data["seats"][0]["later"] = 1
    assert Header.from_data(data) == head


@pytest.mark.parametrize("name", ["game", "rules", "options", "seed", "seats", "retries", "match", "schema"])
@pytest.mark.parametrize("value", [None, 1.5, [], [1], b"x", True])
def test_a_header_of_other_types_is_none(name: str, value: object) -> None:
    if (name, value) == ("seats", []):
        value = [[]]
    with pytest.raises((ValueError, KeyError)):
        Header.from_data({**unpack(pack(header().to_data())), name: value})


FOOTER = Footer(
    Outcome("r", (1.0, -1.0), ("a", "b"), ("a", "b")), ("won", "lost"), {"turns": 2}, 3, bytes(32)
)


def test_the_footer_reads_back() -> None:
    assert Footer.from_data(unpack(pack(FOOTER.to_data()))) == FOOTER


@pytest.mark.parametrize("name", ["outcome", "ended", "counts", "events", "chain"])
@pytest.mark.parametrize("value", [None, "x", [1], {"x": "y"}, b"x", True])
def test_a_footer_of_other_types_is_none(name: str, value: object) -> None:
    with pytest.raises((ValueError, KeyError)):
        Footer.from_data({**unpack(pack(FOOTER.to_data())), name: value})


ANYTHING = (
    st.sampled_from(
        [object(), "\ud800", float("nan"), {1: 2}, {1, 2}, (1, ("a", [])), 2**70, b"x", "…", ["a"]]
    )
    | VALUES
)


@given(
    st.builds(
        Input,
        st.just(0),
        st.just(0),
        ANYTHING,
        ANYTHING | st.none() | st.sampled_from(FAILURES),
        ANYTHING | st.just(""),
        ANYTHING | st.none(),
        ANYTHING | st.none(),
    )
)
def test_whatever_an_agent_answers_becomes_an_input_that_is_read_back_as_it_was_fed(raw: Input) -> None:
    given_ = recordable(raw)
    assert entry_from_data(unpack(pack(entry_to_data(given_)))) == given_
    assert given_.failure in (None, *FAILURES)
    assert (given_.seat, given_.ply) == (0, 0)
    table = Referee(load_game("kuhn").new(seed=1))
    told = table.feed(given_)
    assert len(told) > 1, "it is a move, or an event says what was wrong"


def test_an_answer_that_can_be_recorded_stays_as_it_is() -> None:
    for raw in (
        Input(0, 1, "check"),
        Input(0, 1, ("0", "1"), thought="…", trace={"tokens": [1, 2], "logprobs": [-0.5]}),
        Input(0, 1, None, "ambiguous", "zwei Züge"),
    ):
        assert recordable(raw) == raw


def test_what_cannot_be_recorded_is_left_out_and_the_rest_kept() -> None:
    raw = Input(0, 1, "check", thought="\ud800", trace={"p": float("nan")})
    assert recordable(raw) == Input(0, 1, "check")
    assert recordable(Input(0, 1, {1, 2})).failure == "illegal"
    assert recordable(Input(0, 1, "check", "no such failure")).failure == "error"


def test_an_illegal_list_is_told_to_the_seat_as_a_replay_tells_it() -> None:
    head = header()
    table_entries = []
    table = Referee(load_game("kuhn").new(seed=head.seed), retries=1)
    table_entries += table.opening()
    table_entries += table.feed(recordable(Input(0, 0, ["b", {"z": 1, "a": 2}])))  # type: ignore[arg-type]
    record = read(encode(head, table_entries, None))
    assert record.entries == table_entries


@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
def test_the_same_match_gives_the_same_bytes(game: str) -> None:
    head = header(game, seats=2 if game == "kuhn" else 7)
    assert encode(head, *entries(head, messy=True)) == encode(head, *entries(head, messy=True))
