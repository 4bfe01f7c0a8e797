"""The tiny model's tokenizer: a token for each known word, bytes for all else, so that any text can be written.

Texts come back exactly. No text of a message becomes a special token: the chat template breaks what looks like one,
and so does `split_special_tokens=True` where text is encoded without the template.
"""

from collections.abc import Sequence
from typing import Any

from agents.policy.pretrain.words import FORMS, PATTERN

PAD, SYSTEM, USER, ASSISTANT, END = SPECIALS = (
    "<|pad|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
)

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role not in ('system', 'user', 'assistant') -%}"
    "{{- raise_exception('roles are system, user and assistant, got ' ~ message.role) -}}"
    "{%- endif -%}"
    "{{- '<|' ~ message.role ~ '|>' ~ message.content | replace('<|', '< |') ~ '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def make_tokenizer(words: Sequence[str], *, context_tokens: int) -> Any:
    """Return a transformers tokenizer that knows `words` in all their forms.

    Args:
        words: known words without the space or line end before them, no two alike.
        context_tokens: what the model takes.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = _byte_letters()
    tokens = [*SPECIALS, *(letters[byte] for byte in range(256))]
    tokens += [
        "".join(letters[byte] for byte in (form + word).encode())
        for word in words
        for form in FORMS
        if len((form + word).encode()) > 1
    ]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        model_max_length=context_tokens,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _byte_letters() -> list[str]:
    """Return the letter that stands for each byte in a byte-level vocabulary (the mapping of GPT-2)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = {byte: chr(byte) for byte in plain}
    others = (byte for byte in range(256) if byte not in letters)
    letters |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]
