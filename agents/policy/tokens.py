"""Token ids of prompts, with what was tokenised before kept."""

import re
from collections import OrderedDict
from collections.abc import Sequence

from agents.policy.chat import ChatTokenizer
from agents.prompting.chat import Message

MAX_PIECES = 4096
MAX_PROMPTS = 512


class PromptTokens:
    """Tokenises chats. Special tokens stand for themselves, so what lies between two of them is kept by itself.

    Only for tokenizers whose pieces are the same alone as in company; for others whole prompts are kept.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        special = sorted(
            (token.content for token in tokenizer.inner.added_tokens_decoder.values() if token.special),
            key=len,
            reverse=True,
        )
        self._special = {text: tokenizer.inner.convert_tokens_to_ids(text) for text in special}
        self._border = re.compile("(" + "|".join(map(re.escape, special)) + ")") if special else None
        self._pieces: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        self._prompts: OrderedDict[tuple[Message, ...], tuple[int, ...]] = OrderedDict()
        self._splits: bool | None = None

    def ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of a chat, as `ChatTokenizer.prompt_ids` does."""
        key = tuple(messages)
        found = self._prompts.get(key)
        if found is None:
            found = self._ids(self._tokenizer.render(messages))
            self._prompts[key] = found
            if len(self._prompts) > MAX_PROMPTS:
                self._prompts.popitem(last=False)
        else:
            self._prompts.move_to_end(key)
        return found

    def _ids(self, text: str) -> tuple[int, ...]:
        if self._border is None or self._splits is False:
            return self._tokenizer.encode(text)
        joined: list[int] = []
        for piece in self._border.split(text):
            if piece in self._special:
                joined.append(self._special[piece])
            elif piece:
                joined += self._piece(piece)
        ids = tuple(joined)
        if self._splits is None:
            whole = self._tokenizer.encode(text)
            self._splits = whole == ids
            return whole
        return ids

    def _piece(self, piece: str) -> tuple[int, ...]:
        found = self._pieces.get(piece)
        if found is None:
            found = self._pieces[piece] = self._tokenizer.encode(piece)
            if len(self._pieces) > MAX_PIECES:
                self._pieces.popitem(last=False)
        else:
            self._pieces.move_to_end(piece)
        return found
