"""Words and their tokenizer."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.policy.base import Message
from agents.policy.pretrain.tokenizer import ASSISTANT, END, SPECIALS, make_tokenizer
from agents.policy.pretrain.words import common_words, count_words, split

pytest.importorskip("transformers")

WORDS = ["say", "trust", "suspect", "wolf_target", "0", "3", "10", ",", "."]
PIECES = st.sampled_from(
    [*SPECIALS, "<|", "|>", "<", "|", "end", "system", " ", "\n", "say", " 3", " 10", "é", "😀"]
)
HOSTILE = st.lists(PIECES, max_size=12).map("".join)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tokenizer that was written and read back."""
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer(WORDS, context_tokens=64).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(str(folder))


@given(st.text())
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(split(text)) == text


@given(st.text() | HOSTILE)
def test_any_text_comes_back_exactly_and_forges_no_special_token(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    assert tokenizer.decode(ids) == text
    assert not set(ids) & set(tokenizer.all_special_ids)


@given(st.lists(st.tuples(st.sampled_from(("system", "user", "assistant")), HOSTILE), min_size=1, max_size=4))
def test_a_message_cannot_forge_a_special_token(tokenizer: Any, chat: list[tuple[str, str]]) -> None:
    messages = [Message(role, text)._asdict() for role, text in chat]  # type: ignore[arg-type]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer.encode(text, add_special_tokens=False)
    special = [token for token in tokenizer.convert_ids_to_tokens(ids) if token in SPECIALS]
    framed = [token for role, _ in chat for token in (f"<|{role}|>", END)]
    assert special == [*framed, ASSISTANT]


def test_a_role_that_is_none_is_refused(tokenizer: Any) -> None:
    with pytest.raises(Exception, match="roles are system, user and assistant, got tool"):
        tokenizer.apply_chat_template([{"role": "tool", "content": ""}], tokenize=False)


def test_a_known_word_is_one_token_in_every_form(tokenizer: Any) -> None:
    text = "say 3 trust 10\nsay 0, wolf_target."
    assert len(tokenizer.encode(text)) == count_words(text) == 9
    assert [tokenizer.decode([i]) for i in tokenizer.encode("\nsay say say")] == ["\nsay", " say", " say"]


def test_numbers_and_frequent_words_are_known() -> None:
    words = common_words(["say 3 say 4", "\nsay hapax é é é"], at_least=2)
    assert words == sorted({*map(str, range(13)), "say"})
    assert common_words(["b b a a a"], at_least=1, at_most=1)[-1] == "a"
