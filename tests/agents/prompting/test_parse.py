"""Replies, as models write them, against the rule in docs/replies.md."""

import json
import random
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.prompting import Answer, Failure, Parsed, parse_reply, without_thoughts
from agents.prompting.scan import scan
from games.spaces import Action, ActionSpace, Choice, Subset, Text, space_from_data
from games.text import neutralise

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "replies.jsonl").read_text("utf-8").splitlines()
]

VOTE = Choice(("approve", "reject"), "vote")
SEAT = Choice(("1", "2", "3", "4", "5", "6"), "accuse")
TEAM = Subset(("1", "2", "3", "4", "5"), 2, "propose")
SOLO = Subset(("1", "2", "3"), 1, "propose")
CASED = Choice(("Bet", "bet", "check"), "bet")
WORDS = Choice(("pass turn", "use-card", "naïve", "-1", "1", "ilk"), "move")
SPEECH = Text(40, "speak")
SPACES: tuple[ActionSpace, ...] = (VOTE, SEAT, TEAM, SOLO, CASED, WORDS, SPEECH)


def outcome(parsed: Parsed) -> Action | str:
    return parsed.action if isinstance(parsed, Answer) else f"!{parsed.kind}"


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_shared_cases(case: dict[str, Any]) -> None:
    space = space_from_data(case["space"])
    parsed = parse_reply(space, case["reply"])
    if "action" in case["expect"]:
        assert isinstance(parsed, Answer), case["why"]
        assert parsed.action == space.from_json(case["expect"]["action"]), case["why"]
    else:
        assert isinstance(parsed, Failure), case["why"]
        assert parsed.kind == case["expect"]["failure"], case["why"]


JSON_CASES = {
    "other keys, braces and quotes in strings": (
        VOTE,
        r'{"thought": "if {\"action\": \"approve\"} then } { \"", "action": "reject", "n": [1, {"a": 2}]}',
        "reject",
    ),
    "outermost key counts": (VOTE, '{"action": "reject", "instead": {"action": "approve"}}', "reject"),
    "outermost key counts, written last": (
        VOTE,
        '{"plan": [{"action": "approve"}], "action": "reject"}',
        "reject",
    ),
    "inside an object without the key": (VOTE, '{"move": {"action": "approve"}, "n": 1}', "approve"),
    "last inside an object without the key": (
        VOTE,
        '{"moves": [{"action": "approve"}, {"action": "reject"}]}',
        "reject",
    ),
    "in prose with stray braces": (VOTE, 'Set {a, b} and { then {"action": "reject"} } done.', "reject"),
    "an opening quote before": (VOTE, '{"he said {"action": "reject"}', "reject"),
    "key given twice": (VOTE, '{"action": "approve", "action": "reject"}', "reject"),
    "key with escapes": (VOTE, '{"\\u0061ction": "reject"}', "reject"),
    "value with escapes": (VOTE, '{"action": "re\\u006aect"}', "reject"),
    "other spelling of the key": (VOTE, '{"Action": "reject"}', "!unparsed"),
    "raw line break in a string": (VOTE, '{"thought": "a\nAction: approve\n", "action": "reject"}', "reject"),
    "NaN beside": (VOTE, '{"p": NaN, "q": -Infinity, "action": "reject"}', "reject"),
    "NaN": (VOTE, '{"action": NaN}', "!illegal"),
    "boolean": (SEAT, '{"action": true}', "!illegal"),
    "boolean named like an option": (Choice(("true", "false")), '{"action": true}', "!illegal"),
    "float": (SEAT, '{"action": 3.0}', "!illegal"),
    "number": (SEAT, '{"action": 3}', "3"),
    "huge number": (SEAT, '{"action": ' + "3" * 6000 + "}", "!illegal"),
    "huge number elsewhere": (SEAT, '{"x": ' + "3" * 6000 + ', "action": 4}', "4"),
    "leading zero": (SEAT, '{"action": "03"}', "!illegal"),
    "negative is not the option without its sign": (SEAT, '{"action": "-3"}', "!illegal"),
    "an object as action": (SEAT, '{"action": {"action": "3"}}', "!illegal"),
    "deep value": (SEAT, '{"action": ' + "[" * 50_000 + "]" * 50_000 + "}", "!illegal"),
    "deep value elsewhere": (SEAT, '{"x": ' + "[" * 50_000 + "]" * 50_000 + ', "action": 2}', "2"),
    "deep objects": (SEAT, '{"x":' * 50_000 + '{"action": 2}' + "}" * 50_000, "2"),
    "list of one": (VOTE, '{"action": ["reject"]}', "reject"),
    "list of two": (VOTE, '{"action": ["approve", "reject"]}', "!ambiguous"),
    "empty list": (VOTE, '{"action": []}', "!illegal"),
    "an array is no object": (VOTE, '["action", "reject"]', "!unparsed"),
    "wrong quotes": (VOTE, "{'action': 'reject'}", "!unparsed"),
    "comma at the end": (VOTE, '{"action": "reject",}', "!unparsed"),
    "bad escape in the value": (VOTE, '{"action": "re\\ject"}', "!unparsed"),
    "bad escape elsewhere": (VOTE, '{"thought": "I don\\\'t", "action": "reject"}', "reject"),
    "malformed after a good one": (VOTE, '{"action": "approve"} no: {"action": \'reject\'}', "!unparsed"),
    "bare key after a good one": (VOTE, '{"action": "approve"} no: {action: "reject"}', "!unparsed"),
    "malformed before a good one": (VOTE, "{'action': 'approve'} no: {\"action\": \"reject\"}", "reject"),
    "cut off after a good one": (VOTE, '{"action": "approve"} wait {"action": "rej', "!unparsed"),
    "cut off before its key": (VOTE, '{"action": "approve"}\n{"thought": "wait, seat 4', "!unparsed"),
    "cut off, complete inside": (VOTE, '{"x": {"action": "approve"}, "why": "beca', "!unparsed"),
    "cut off in a nested brace": (VOTE, '{"action": "approve"} {"x": {', "!unparsed"),
    "cut off in a fence": (VOTE, '```json\n{"action": "appro\n```', "!unparsed"),
    "no space needed": (VOTE, 'x{"action":"approve"}{"b":1}y', "approve"),
    "a brace at the end": (VOTE, '{"action": "approve"} {', "approve"),
}

OTHER_CASES = {
    "boxed, nested wrappers": (VOTE, r"$\boxed{\mathbf{\text{ Reject }}}$", "reject"),
    "boxed, nested boxes": (VOTE, r"\boxed{\boxed{reject}}", "reject"),
    "boxed list": (TEAM, r"\boxed{\{4, 3\}}", ("3", "4")),
    "boxed, escaped": (Choice(("night_kill", "no_kill")), r"\boxed{\text{night\_kill}}", "night_kill"),
    "boxed, doubled backslash": (VOTE, r"\\boxed{reject}", "reject"),
    "boxed, last": (VOTE, r"\boxed{approve} hm \boxed{reject}", "reject"),
    "boxed, illegal and final": (VOTE, r"\boxed{approve} hm \boxed{abstain}", "!illegal"),
    "boxed, cut off": (VOTE, r"\boxed{approve} hm \boxed{rej", "!unparsed"),
    "boxed, empty": (VOTE, r"\boxed{}", "!unparsed"),
    "boxed JSON": (VOTE, r'\boxed{{"action": "reject"}}', "reject"),
    "boxed in a JSON string": (VOTE, '{"thought": "\\\\boxed{approve}", "action": "reject"}', "reject"),
    "unboxed": (VOTE, "boxed{reject}", "!unparsed"),
    "line, emphasis outside": (VOTE, "**Action: reject**", "reject"),
    "line, emphasis on the name": (VOTE, "**Action:** reject", "reject"),
    "line, emphasis before the colon": (VOTE, "__Action__: *reject*", "reject"),
    "line, bullet": (VOTE, "- action: reject", "reject"),
    "line, star bullet": (VOTE, "* **Action:** reject", "reject"),
    "line, number": (VOTE, "2. ACTION : `Reject`.", "reject"),
    "line, quoted": (VOTE, "> Action: “reject”!", "reject"),
    "line, full-width colon": (VOTE, "Action：reject", "reject"),
    "line, CRLF": (VOTE, "Hm.\r\nAction: reject\r\nThanks.\r\n", "reject"),
    "line, U+2028": (VOTE, "Hm.\u2028Action: reject\u2028Thanks.", "reject"),
    "line, in the middle": (VOTE, "I say Action: reject", "!unparsed"),
    "line, longer word": (VOTE, "Transaction: reject", "!unparsed"),
    "line, dotless i": (VOTE, "actıon: reject", "!unparsed"),
    "line, negated": (VOTE, "Action: I do not approve", "!illegal"),
    "line, with a remark": (VOTE, "Action: approve because of seat 2", "!illegal"),
    "line, question": (VOTE, "Action: approve?", "!illegal"),
    "line, struck out": (VOTE, "Action: ~~approve~~", "!illegal"),
    "line, two options": (VOTE, "Action: approve/reject", "!ambiguous"),
    "line, two options in prose": (VOTE, "Action: I approve, then I reject", "!ambiguous"),
    "line, illegal and final": (VOTE, "Action: approve\nAction: abstain", "!illegal"),
    "line, empty after a good one": (VOTE, "Action: approve\nAction:", "!unparsed"),
    "JSON on a line": (VOTE, 'Action: {"action": "reject"}', "reject"),
    "line after JSON": (VOTE, '{"action": "approve"}\nNo.\nAction: reject', "reject"),
    "illegal line after JSON": (VOTE, '{"action": "approve"}\nNo.\nAction: abstain', "!illegal"),
    "JSON after a line": (VOTE, 'Action: approve\n{"action": "reject"}', "reject"),
    "box after JSON": (VOTE, '{"action": "approve"} \\boxed{reject}', "reject"),
    "line in a JSON string": (VOTE, '{"action": "reject", "say": "x\\nAction: approve"}', "reject"),
    "bare, emphasis": (VOTE, "**Reject**", "reject"),
    "bare, quoted": (VOTE, '"reject".', "reject"),
    "bare, fenced": (VOTE, "```\nreject\n```", "reject"),
    "bare, fenced with a language": (VOTE, "```text\nreject\n```", "reject"),
    "bare, bullet": (VOTE, "- reject", "reject"),
    "bare, after a thought": (VOTE, "<think>approve?</think>\n\nreject", "reject"),
    "bare, both": (VOTE, "approve or reject", "!unparsed"),
    "bare, said twice": (VOTE, "reject\nreject", "!unparsed"),
    "bare list": (TEAM, "[3, 4]", ("3", "4")),
    "bare list in words": (TEAM, "Players 4 and 3.", ("3", "4")),
    "bare list, too short": (TEAM, "3", "!illegal"),
    "bare list with a remark": (TEAM, "3 and 4 look good", "!unparsed"),
    "label": (SEAT, '{"action": "seat #5"}', "5"),
    "label, spelled out": (SEAT, "Action: Seat No. 5", "5"),
    "label, underscore": (SEAT, "player_5", "5"),
    "label, hash": (SEAT, "#5", "5"),
    "label, off table": (SEAT, "Action: Player 9", "!illegal"),
    "label, negative": (SEAT, "Action: seat -5", "!illegal"),
    "label of another kind": (SEAT, "Action: option 5", "!illegal"),
    "label where options are no numbers": (VOTE, "Action: Player 1", "!illegal"),
    "list, words and commas": (Subset(SEAT.options, 3), "Action: 3,4 and 5", ("3", "4", "5")),
    "list, Oxford comma": (Subset(SEAT.options, 3), "Action: 3, 4, and 5.", ("3", "4", "5")),
    "list, labels": (TEAM, "Action: Player 4, Seat 3", ("3", "4")),
    "list, plural": (TEAM, "Action: seats 3 & 4", ("3", "4")),
    "list, quoted items": (TEAM, 'Action: ["3", "4"]', ("3", "4")),
    "list in a JSON string": (TEAM, '{"action": "[4, 3]"}', ("3", "4")),
    "list, mixed items": (TEAM, '{"action": [4, "Player 3"]}', ("3", "4")),
    "list, any order": (TEAM, '{"action": ["5", "1"]}', ("1", "5")),
    "list, alternatives": (TEAM, "Action: 3 or 4", "!ambiguous"),
    "list, too long": (TEAM, "Action: 1, 2, 3", "!illegal"),
    "list, run together": (TEAM, "Action: 34", "!illegal"),
    "list, twice": (TEAM, "Action: 3 and seat 3", "!illegal"),
    "list, floats": (TEAM, '{"action": [3.0, 4]}', "!illegal"),
    "list, nested": (TEAM, '{"action": [[3, 4]]}', "!illegal"),
    "list of one, alone": (SOLO, '{"action": 3}', ("3",)),
    "list of one, in words": (SOLO, "Action: Player 3", ("3",)),
    "list of none": (Subset(("1", "2"), 0), "Action: []", ()),
    "case apart, first": (CASED, "Bet", "Bet"),
    "case apart, second": (CASED, '{"action": "bet"}', "bet"),
    "case apart, neither": (CASED, "Action: BET", "!ambiguous"),
    "case apart, neither, bare": (CASED, "BET.", "!ambiguous"),
    "inner space": (WORDS, "Action: Pass  turn", "pass turn"),
    "inner punctuation": (WORDS, "Action: use-card.", "use-card"),
    "decomposed accent": (WORDS, "nai\u0308ve", "naïve"),
    "a signed option": (WORDS, "Action: -1", "-1"),
    "dotted capital i is another letter": (WORDS, "Action: İLK", "!illegal"),
    "full-width digit": (SEAT, "Action: ５", "5"),
    "superscript is no digit": (SEAT, "Action: 5²", "!illegal"),
    "circled is no digit": (SEAT, "Action: ⑤", "!illegal"),
    "Arabic digit is another": (SEAT, "Action: ٥", "!illegal"),
    "no-break space": (SEAT, '{"action": "\u00a05\u00a0"}', "5"),
    "zero width": (SEAT, "\ufeff\u200bAction:\u200b 5\u200b", "5"),
    "zero width inside": (VOTE, "Action: re\u200bject", "!illegal"),
}

THOUGHT_CASES = {
    "long tag": (VOTE, "<thinking>approve</thinking> reject", "reject"),
    "case and space": (VOTE, "<Think >Action: approve</THINK>\nAction: reject", "reject"),
    "only the end": (VOTE, 'Maybe {"action": "approve"} hm.</think>reject', "reject"),
    "only the end, nothing after": (VOTE, '{"action": "approve"}</think>', "!unparsed"),
    "nested": (VOTE, "<think>a<think>b</think>\nAction: approve\n</think>\nAction: reject", "reject"),
    "nested, unfinished": (VOTE, "<think>a<think>b</think>\nAction: approve", "!unparsed"),
    "adjacent": (VOTE, "<think>a</think><think>b</think>reject<think>c</think>", "reject"),
    "answer between": (VOTE, '<think>a</think>{"action": "reject"}<think>approve', "reject"),
    "a thought joins no words": (VOTE, "re<think>x</think>ject", "!unparsed"),
    "a thought begins a line": (VOTE, "Hm. <think>x</think>Action: reject", "reject"),
    "another tag": (VOTE, "<b>Action: approve</b>", "!unparsed"),
}

TEXT_CASES = {
    "plain": (SPEECH, "  I trust seat 3.\n", "I trust seat 3."),
    "plain, two lines": (SPEECH, "I trust 3.\nNot 4.", "I trust 3.\nNot 4."),
    "plain, after a thought": (SPEECH, "<think>3 is evil</think>\nI trust 3.", "I trust 3."),
    "JSON, as it stands": (SPEECH, '{"action": " \\"hm\\" **so** "}', ' "hm" **so** '),
    "JSON, beside prose": (SPEECH, 'I will lie. {"action": "I trust 3."}', "I trust 3."),
    "JSON, silence": (SPEECH, '{"action": ""}', ""),
    "JSON, no string": (SPEECH, '{"action": 3}', "!illegal"),
    "JSON, null": (SPEECH, '{"action": null}', "!illegal"),
    "JSON, cut off is not said": (SPEECH, '{"action": "I tru', "!unparsed"),
    "JSON, wrong key is not said": (SPEECH, '```json\n{"speech": "I am good"}\n```', "!unparsed"),
    "JSON, surrogate": (SPEECH, '{"action": "\\ud800"}', "!illegal"),
    "line": (SPEECH, "I will lie.\nAction: I trust 3.", "I trust 3."),
    "line, to the end": (SPEECH, "Hm.\n**Action:** I trust 3.\nNot 4.", "I trust 3.\nNot 4."),
    "line, next line": (SPEECH, "Action:\nI trust 3.", "I trust 3."),
    "line, own emphasis": (SPEECH, "Action: *waves* Hello", "*waves* Hello"),
    "line, emphasis around": (SPEECH, "**Action: Hello**", "Hello"),
    "line, empty": (SPEECH, "Hm.\nAction: ", "!unparsed"),
    "too long": (SPEECH, "x" * 41, "!illegal"),
    "just short enough": (SPEECH, "x" * 40, "x" * 40),
    "blank": (SPEECH, " \n\u200b ", "!unparsed"),
    "empty": (SPEECH, "", "!unparsed"),
}


@pytest.mark.parametrize(
    ("space", "reply", "expected"),
    [
        pytest.param(*case, id=f"{group}: {name}")
        for group, cases in (
            ("json", JSON_CASES),
            ("other", OTHER_CASES),
            ("thought", THOUGHT_CASES),
            ("text", TEXT_CASES),
        )
        for name, case in cases.items()
    ],
)
def test_rule(space: ActionSpace, reply: str, expected: Action) -> None:
    assert outcome(parse_reply(space, reply)) == expected


def test_reasons_say_what_was_wrong_and_what_is_allowed() -> None:
    parsed = parse_reply(VOTE, '{"action": "all-in"}')
    assert parsed == Failure(
        "illegal", '"all-in" is not a legal action; write {"action": …} with one of: approve, reject'
    )
    parsed = parse_reply(TEAM, "Action: [98, 99]")
    assert isinstance(parsed, Failure)
    assert "98" in parsed.reason and "exactly 2 different of: 1, 2, 3, 4, 5" in parsed.reason


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_reasons_are_one_short_printable_line(space: ActionSpace) -> None:
    nasty = "a\nb\u2028c\x1b[31m\u202e<|im_start|>system " * 30
    for reply in (
        nasty * 50,
        json.dumps({"action": nasty}),
        json.dumps({"action": [nasty] * 9}),
        f"Action: {nasty}",
    ):
        parsed = parse_reply(space, reply)
        if isinstance(parsed, Failure):
            assert parsed.reason.isprintable()
            assert "<|im_start|>" not in parsed.reason
            assert len(parsed.reason) <= 300


def test_reason_with_ten_thousand_nasty_options() -> None:
    parsed = parse_reply(Choice(tuple(f"\x1b{i}\n" for i in range(10_000))), "none")
    assert isinstance(parsed, Failure)
    assert parsed.reason.isprintable() and len(parsed.reason) <= 300


def test_a_space_of_another_kind_is_read_as_json_exactly() -> None:
    class Even(Choice):
        """Numbers as actions, which no space of ours has."""

        def contains(self, action: object) -> bool:
            return isinstance(action, int) and action % 2 == 0

    assert parse_reply(Even(("2",)), '{"action": 4}') == Answer(4)  # type: ignore[arg-type]
    assert outcome(parse_reply(Even(("2",)), '{"action": 3}')) == "!illegal"
    assert outcome(parse_reply(Even(("2",)), "4")) == "!unparsed"


def test_without_thoughts_keeps_what_is_around() -> None:
    assert without_thoughts("a<think>b</think>c") == "a\nc"
    assert without_thoughts("a<think>b") == "a"
    assert without_thoughts("a</think>b") == "b"


# Cost. Every one of these has cost some parser quadratic time or its stack; here a quadratic pass over two
# hundred thousand characters runs into the timeout of the test, and lines run are counted beside it.

BLOCKS = (
    "{",
    "}",
    "[",
    '"',
    "\\",
    " ",
    "\n",
    "\u2028",
    "`",
    "*",
    "> ",
    '{"',
    '{"\\"',
    '"action"',
    '{"action":',
    '{"action":[',
    '{"action":"a"}',
    '{"a":"',
    '{"a":[{',
    '{"":":",",":',
    '{"{":":",',
    '{"a":{},',
    "{}",
    "{action:",
    "<think>",
    "</think>",
    "<think ",
    "\\boxed{",
    "\\boxed ",
    "\\boxed{\\text{",
    "Action:",
    "Action:\n",
    "Action: 3\n",
    "3 and ",
    "3,",
    "a\u0301\u0323",
)
AROUND = (
    ("", ""),
    ("Action: ", ""),
    ("\\boxed{", "}"),
    ('{"action":"', '"}'),
    ('{"action":[', "]}"),
    ('{"x":', "}"),
)


@pytest.mark.parametrize("block", BLOCKS, ids=[ascii(block) for block in BLOCKS])
def test_two_hundred_thousand_characters_of_anything(block: str) -> None:
    for before, after in AROUND:
        for space in (SEAT, TEAM) if before == "Action: " else (TEAM,):
            parsed = parse_reply(space, before + block * (200_000 // len(block)) + after)
            assert isinstance(parsed, Failure) or space.contains(parsed.action)


def lines_run(text: str) -> int:
    """Count the lines of Python that a scan of `text` runs, comprehensions included."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scan(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("block", BLOCKS, ids=[ascii(block) for block in BLOCKS])
@pytest.mark.parametrize(("before", "after"), AROUND)
def test_twice_the_text_is_at_most_twice_the_work(block: str, before: str, after: str) -> None:
    once = lines_run(before + block * 100 + after)
    twice = lines_run(before + block * 200 + after)
    assert twice <= 2 * once + 40


# Properties.

PROSE = st.text(st.sampled_from("abcdefghij klmnopqrstuvwxyz.,!?;()-_'é5\n" + "3"), max_size=80).filter(
    lambda text: "action" not in text.casefold() and "boxed" not in text
)

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            (
                "<think>",
                "</think>",
                '{"action": ',
                '"approve"',
                "reject",
                '"3"',
                "[3, 4]",
                "}",
                "{",
                '"',
                "\\",
                "\\boxed{",
                "\\text{",
                "\nAction: ",
                "```",
                "**",
                ",",
                " or ",
                " and ",
                "Player 3",
                "\ud800",
                "\x00",
                "NaN",
                "1e999",
            )
        ),
        st.text(max_size=6),
    ),
    max_size=24,
).map("".join)


@st.composite
def spaces_with_actions(draw: st.DrawFn) -> tuple[ActionSpace, Action]:
    kind = draw(st.sampled_from(("choice", "subset", "text")))
    if kind == "text":
        text = draw(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=60))
        return Text(60), text
    options = tuple(draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8, unique=True)))
    options = tuple(option for option in options if "<" not in option) or ("a",)
    space: ActionSpace = Choice(options)
    if kind == "subset":
        space = Subset(options, draw(st.integers(0, len(options))))
    return space, space.sample(random.Random(draw(st.integers(0, 2**32))))


@given(spaces_with_actions(), st.booleans(), PROSE, PROSE)
def test_what_is_dumped_is_read_back(
    pair: tuple[ActionSpace, Action], ascii_only: bool, before: str, after: str
) -> None:
    space, action = pair
    dumped = json.dumps({"say": before, "action": action, "because": after}, ensure_ascii=ascii_only)
    assert parse_reply(space, f"{before} {dumped} {after}") == Answer(action)


@given(st.sampled_from(SPACES), PIECES)
@example(Choice(("approve", "reject"), "vote"), "\nAction: 0\xa00")
@settings(max_examples=400)
def test_never_raises_and_an_answer_is_legal(space: ActionSpace, reply: str) -> None:
    parsed = parse_reply(space, reply)
    if isinstance(parsed, Answer):
        assert space.contains(parsed.action)
    else:
        assert parsed.reason == neutralise(parsed.reason) and 0 < len(parsed.reason) <= 300


FORMS = (
    lambda word: json.dumps({"action": word}),
    lambda word: "```json\n" + json.dumps({"thought": "{", "action": word}, indent=1) + "\n```",
    lambda word: f"\\boxed{{\\text{{{word}}}}}",
    lambda word: f"\n**Action:** {word}\n",
)


@given(
    st.lists(
        st.tuples(st.sampled_from(FORMS), st.sampled_from(("approve", "reject", "abstain")), PROSE),
        min_size=1,
        max_size=6,
    )
)
def test_the_last_commitment_wins(parts: list[tuple[Any, str, str]]) -> None:
    reply = "".join(form(word) + "\n" + prose + "\n" for form, word, prose in parts)
    expected = parts[-1][1] if parts[-1][1] != "abstain" else "!illegal"
    assert outcome(parse_reply(VOTE, reply)) == expected


@given(PROSE.filter(lambda text: len(text.split()) > 1), st.sampled_from(("approve", "reject")), PROSE)
def test_prose_is_no_answer(before: str, option: str, after: str) -> None:
    assert outcome(parse_reply(VOTE, f"{before} {option} {after} so")) == "!unparsed"


@given(st.sampled_from(SPACES), PIECES, PIECES)
def test_thoughts_change_nothing(space: ActionSpace, reply: str, thought: str) -> None:
    plain, inner = without_thoughts(reply), without_thoughts(thought)
    expected = outcome(parse_reply(space, plain))
    assert outcome(parse_reply(space, f"<think>{inner}</think>{plain}")) == expected
    assert outcome(parse_reply(space, f"{inner}</think>{plain}")) == expected
    assert outcome(parse_reply(space, f"<thinking>{inner}</thinking>\n<think></think>{plain}")) == expected
