import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import BadModel
from agents.policy.chat import ChatTokenizer
from agents.policy.constraints import Guides, Vocabulary
from agents.policy.schemas import token_bound
from agents.prompting.chat import Constraint
from games.spaces import Subset

pytest.importorskip("transformers")

WORDS = ("approve", "reject", "a", "ap", "0, 1", "0, 1, 2", "seat 3", "é", "«…»", "never-seen-word", "Zz")


@pytest.fixture(scope="module")
def guides(model_folder: Path) -> Guides:
    inner = ChatTokenizer(model_folder).inner
    return Guides(inner, vocabulary_size=len(inner))


class _Vocabulary:
    """Stands for a tokenizer of whole words, which cannot write everything."""

    def __init__(self, *words: str, decoder: Any = None) -> None:
        self.words = ("<end>", *words)
        self.decoder = {"type": "Fuse"} if decoder is None else decoder
        self.eos_token_id = 0
        self.backend_tokenizer = self
        self.added_tokens_decoder = {0: type("Token", (), {"special": True, "content": "<end>"})}

    def to_str(self) -> str:
        return json.dumps({"decoder": self.decoder})

    def get_vocab(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}


def naive(vocabulary: Vocabulary, choices: tuple[str, ...], emitted: bytes) -> list[int]:
    """Return the allowed tokens by the rule as it is stated, trying every token."""
    written = [choice.encode() for choice in choices]
    allowed = [
        token
        for token, text in vocabulary.tokens.items()
        if any(choice.startswith(emitted + text) for choice in written)
    ]
    return sorted([*allowed, vocabulary.end] if emitted in written else allowed)


@settings(deadline=None, max_examples=60)
@given(st.sets(st.sampled_from(WORDS), min_size=1), st.randoms(use_true_random=False))
def test_a_token_is_allowed_where_it_begins_a_choice(guides: Guides, words: set[str], rng: Any) -> None:
    choices = tuple(sorted(words))
    guide = guides.guide(Constraint(choices=choices))
    emitted = b""
    for _ in range(100):
        assert guide.ids is not None
        assert guide.ids.tolist() == naive(guides.vocabulary, choices, emitted)
        assert guide.forced == (guide.ids[0] if len(guide.ids) == 1 else None)
        token = rng.choice(guide.ids.tolist())
        if token == guides.vocabulary.end:
            break
        guide.advance(token)
        emitted += guides.vocabulary.tokens[token]
    assert emitted.decode() in choices
    assert len(emitted) < token_bound(Constraint(choices=choices), 0)


def test_two_completions_of_the_same_choices_do_not_disturb_each_other(guides: Guides) -> None:
    one, two = (guides.guide(Constraint(choices=("ab", "cd"))) for _ in range(2))
    assert one.ids is not None and two.ids is not None
    before = two.ids.tolist()
    one.advance(int(one.ids[0]))
    assert two.ids.tolist() == before != one.ids.tolist()


def test_without_a_constraint_everything_is_allowed(guides: Guides) -> None:
    guide = guides.guide(None)
    guide.advance(7)
    assert guide.ids is None and guide.mask is None and guide.forced is None


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 3), st.integers(2, 5), st.randoms(use_true_random=False))
def test_a_schema_leads_to_what_it_accepts(guides: Guides, size: int, options: int, rng: Any) -> None:
    names = [f"seat {i}" for i in range(options)]
    schema = {
        "type": "array",
        "items": {"enum": names},
        "minItems": size,
        "maxItems": size,
        "uniqueItems": True,
    }
    guide = guides.guide(Constraint(schema=schema))
    emitted = b""
    for _ in range(400):
        allowed = np.flatnonzero(guide.mask) if guide.ids is None else guide.ids
        token = int(rng.choice(allowed.tolist()))
        if token == guides.vocabulary.end:
            break
        guide.advance(token)
        emitted += guides.vocabulary.tokens[token]
    value = json.loads(emitted)
    assert len(value) == size and all(item in names for item in value)
    assert emitted.decode() == json.dumps(value)


def test_free_strings_in_a_schema_use_the_whole_vocabulary(guides: Guides) -> None:
    guide = guides.guide(Constraint(schema={"type": "string", "maxLength": 40}))
    guide.advance(next(iter(guides.vocabulary.by_bytes[b'"'])))
    assert guide.ids is None and guide.mask is not None and guide.mask.sum() > 200
    assert not guide.mask[guides.vocabulary.end]


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:1/x"}])
def test_a_schema_that_is_none_is_one_line(guides: Guides, schema: dict[str, Any]) -> None:
    with pytest.raises(BadModel, match="schema is not understood") as caught:
        guides.guide(Constraint(schema=schema))
    assert "\n" not in str(caught.value)


def test_words_that_lead_to_a_dead_end_are_not_allowed() -> None:
    guides = Guides(_Vocabulary("ap", "app", "rove", "reject", "a"), vocabulary_size=6)
    guide = guides.guide(Constraint(choices=("approve", "reject")))
    assert guide.ids is not None and guide.ids.tolist() == [2, 4]  # "ap" and "a" cannot be gone on from
    with pytest.raises(BadModel, match="cannot write the answer 'approves'"):
        guides.guide(Constraint(choices=("reject", "approves")))


@pytest.mark.parametrize(
    ("decoder", "token", "text"),
    [
        ({"type": "ByteLevel"}, "Ġso", b" so"),
        ({"type": "ByteLevel"}, "Ã©", "é".encode()),
        ({"type": "Metaspace", "replacement": "▁"}, "▁so", b" so"),
        ({"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}]}, "<0x0A>", b"\n"),
        ({"type": "Fuse"}, "so", b"so"),
    ],
)
def test_tokens_stand_for_bytes_as_their_decoder_says(decoder: Any, token: str, text: bytes) -> None:
    vocabulary = Vocabulary(_Vocabulary(token, decoder=decoder))
    assert vocabulary.tokens == {1: text}
    assert vocabulary.end == 0


def test_tokenizers_that_join_with_spaces_are_refused() -> None:
    with pytest.raises(BadModel, match="decodes by WordPiece; needed is ByteLevel"):
        Vocabulary(_Vocabulary("a", decoder={"type": "WordPiece"}))


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=8, unique=True).flatmap(
        lambda options: st.tuples(st.just(options), st.integers(1, len(options)))
    )
)
def test_json_has_room_for_whatever_a_subset_may_be(given_: tuple[list[str], int]) -> None:
    options, size = given_
    bound = token_bound(Constraint(schema=Subset(tuple(options), size).schema()), 3)
    longest = sorted(options, key=lambda option: len(json.dumps(option)))[-size:]
    assert bound > max(len(json.dumps(longest)), len(json.dumps(longest, ensure_ascii=False).encode()))


def test_json_without_a_bound_has_that_of_the_request() -> None:
    endless: list[Any] = [{"type": "string"}, {"type": "array", "items": {"const": 1}}, {}, True]
    assert [token_bound(Constraint(schema=one), 7) for one in endless] == [7] * 4
    assert token_bound(Constraint(schema={"type": "boolean"}), 1) == len("false") + 1
