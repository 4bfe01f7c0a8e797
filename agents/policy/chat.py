"""The tokens that a local model sees of a chat, and what the model is.

Every local back end renders and counts with the tokenizer that lies beside the weights, through this one module,
so that the same request is the same prompt whichever back end answers.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.errors import BadModel, EngineMissing
from agents.policy.quiet import hush
from agents.prompting.chat import Message
from games.text import neutralise

DIGEST_PATTERNS = ("*.safetensors", "*.bin", "*.gguf", "config.json", "tokenizer.json", "chat_template.jinja")
DIGEST_CHARS = 12
PROBE = (Message("system", "a"), Message("user", "b"), Message("assistant", "c"), Message("user", "d"))
"""A chat of the longest form in which seats ask: with a thought before the answer."""
COUNTS_KEPT = 4096
"""Texts of which it is kept how many tokens they have."""
BYTES_PER_TOKEN = 3
"""A cautious guess for text in any language, where no tokenizer is given."""
_CHUNK_BYTES = 1 << 20


class ChatTokenizer:
    """The tokenizer and chat template of a model.

    Args:
        model: a folder with the model's files.

    Raises `EngineMissing` without transformers, `BadModel` for a model without a tokenizer or chat template.
    """

    def __init__(self, model: str | Path) -> None:
        hush()
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise EngineMissing(
                f"transformers cannot be imported: {one_line(error)}; install the extra 'policy'"
            ) from None
        check_folder(model)
        try:
            self.inner: Any = AutoTokenizer.from_pretrained(str(model), local_files_only=True)
        except Exception as error:
            raise BadModel(f"model {str(model)!r}: no tokenizer can be loaded: {one_line(error)}") from None
        if not self.inner.chat_template:
            raise BadModel(f"model {str(model)!r}: its tokenizer has no chat template, and one is needed")
        try:
            self.render(PROBE)
        except Exception as error:  # whatever the template raises, and better now than at the first turn
            raise BadModel(
                f"model {str(model)!r}: its chat template takes no system message or no second question: "
                f"{one_line(error)}"
            ) from None
        # What transformers puts around its own backend takes many times as long as that.
        self._fast: Any = getattr(self.inner, "backend_tokenizer", None)
        # Seats and matches are told the same lines again and again.
        self._counted = lru_cache(maxsize=COUNTS_KEPT)(self._count)

    def render(self, messages: Sequence[Message]) -> str:
        """Return the chat as the text that the model continues."""
        chat = [{"role": message.role, "content": message.content} for message in messages]
        return str(self.inner.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of the chat; the template writes every special token that there is."""
        return self.encode(self.render(messages))

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of `text`; nothing is added, and special tokens that it spells out are found."""
        if self._fast is not None:
            return tuple(self._fast.encode(text, add_special_tokens=False).ids)
        return tuple(self.inner.encode(text, add_special_tokens=False))

    def count(self, text: str) -> int:
        """Return how many tokens `text` has."""
        return self._counted(text)

    def _count(self, text: str) -> int:
        return len(self.encode(text))


class TokenCount:
    """Counts tokens as a model's tokenizer does, without transformers and torch, which take seconds to import.

    Args:
        written: the tokenizer of the fast kind, as its file says it.
    """

    def __init__(self, written: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_str(written)
        self._counted = lru_cache(maxsize=COUNTS_KEPT)(self._count)

    def count(self, text: str) -> int:
        """Return how many tokens `text` has."""
        return self._counted(text)

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def guess_tokens(text: str) -> int:
    """Return about how many tokens `text` has, where there is no tokenizer to count with."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def check_folder(model: str | Path) -> None:
    """Raise `BadModel` unless `model` is a folder; transformers would take it for a name and ask the network."""
    if not Path(model).is_dir():
        raise BadModel(f"model {str(model)!r}: no such folder")


def describe_model(model: str | Path) -> str:
    """Return a model's name, with the first digits of a SHA-256 over its files where they are local. Reads them."""
    folder = Path(model)
    if not folder.is_dir():
        return str(model)
    digest = hashlib.sha256()
    files = sorted({path for pattern in DIGEST_PATTERNS for path in folder.glob(pattern)})
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as opened:
            while chunk := opened.read(_CHUNK_BYTES):
                digest.update(chunk)
    return f"{folder.resolve().name}@{digest.hexdigest()[:DIGEST_CHARS]}"


def one_line(error: BaseException, *, limit: int = 300) -> str:
    """Return an error of another project's code on one line, shortened."""
    text = neutralise(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
