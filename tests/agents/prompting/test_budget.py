"""The rule of the budget, on any events."""

from hypothesis import given
from hypothesis import strategies as st

from agents.prompting.budget import Telling
from agents.prompting.template import Line

WORD = st.sampled_from(["a", "bb", "c d", "e f g"])
LINES = st.lists(
    st.builds(
        lambda whole, brief, opens, i: Line(
            f"w{i} {whole}", None if brief is None else f"b{i} {brief}", opens
        ),
        WORD,
        st.none() | WORD,
        st.booleans(),
        st.integers(0, 10**6),
    ),
    max_size=25,
)


def count(text: str) -> int:
    return len(text.split())


def telling(lines: list[Line], *, summary: str = "in short") -> Telling:
    made = Telling(count, left_out="{} left out".format, summary=summary)
    for line in lines:
        made.add(line)
    return made


@given(LINES, st.integers(-2, 120), st.sampled_from(["", "in short"]))
def test_what_is_told_fits_and_is_whole_events_in_order(lines: list[Line], room: int, summary: str) -> None:
    fitted = telling(lines, summary=summary).fit(room)
    if fitted is None:
        assert room < count("9 left out") or room < 0
        return
    assert count(fitted.text) == fitted.tokens <= room
    expected = [line.brief for line in lines[fitted.left_out : fitted.brief] if line.brief is not None]
    if fitted.left_out:
        assert fitted.brief == len(lines)
        expected.insert(0, f"{fitted.left_out} left out")
    elif expected and summary:
        expected.insert(0, summary)
    expected += [line.whole for line in lines[fitted.brief :]]
    assert list(fitted.lines) == expected


@given(LINES, st.integers(0, 100), st.integers(0, 30))
def test_more_room_never_tells_less(lines: list[Line], room: int, more: int) -> None:
    made = telling(lines, summary="")
    less, rest = made.fit(room), made.fit(room + more)
    if less is not None:
        assert rest is not None
        assert (rest.left_out, rest.brief) <= (less.left_out, less.brief)


@given(LINES, LINES, st.integers(0, 100))
def test_events_to_come_change_nothing_before_them_while_the_border_stays(
    lines: list[Line], later: list[Line], room: int
) -> None:
    made = telling(lines)
    before = made.fit(room)
    for line in later:
        made.add(line)
    after = made.fit(room)
    if before is None or after is None:
        return
    assert (after.left_out, after.brief) >= (before.left_out, before.brief)
    if (after.left_out, after.brief) == (before.left_out, before.brief):
        assert after.text.startswith(before.text)


def test_older_rounds_go_first_then_the_older_part_of_this_round_then_events() -> None:
    made = telling(
        [
            Line("round 1", None, opens=True),
            Line("speech one", None),
            Line("vote one long", "vote one"),
            Line("round 2", None, opens=True),
            Line("speech two", None),
            Line("vote two long", "vote two"),
        ],
        summary="",
    )
    told = {room: made.fit(room) for room in range(0, 15)}
    assert told[14] is not None and told[14].brief == 0
    assert told[9] is not None and told[9].lines == ("vote one", "round 2", "speech two", "vote two long")
    assert told[7] is not None and told[7].lines == ("vote one", "speech two", "vote two long")
    assert told[4] is not None and told[4].lines == ("vote one", "vote two")
    assert told[3] is not None and told[3].lines == ("6 left out",)
    assert told[2] is None
