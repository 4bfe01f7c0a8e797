"""Constrained decoding: at each step, which tokens may come next.

Among choices the rule is over strings, whatever the tokens: a token is allowed where what was emitted, with it,
begins some choice; the end token is allowed where what was emitted is a choice. Grammar-based decoders of other
back ends allow the same, so log-probabilities under the mask agree.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.errors import BadModel, EngineMissing
from agents.policy.chat import one_line
from agents.policy.schemas import grammar_schema
from agents.prompting.chat import Constraint

MAX_MACHINES = 512
"""Sets of choices whose states are kept."""
MAX_FEW = 64
"""Tokens up to which the allowed ones are listed; beyond, it is said of each token of the vocabulary."""
JSON_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As Python writes JSON."""


class Vocabulary:
    """The bytes that each token adds to a text.

    Args:
        tokenizer: a fast tokenizer of transformers.

    Raises `BadModel` for a tokenizer whose tokens do not simply follow one another.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None or tokenizer.eos_token_id is None:
            raise BadModel("the model's tokenizer is not of the fast kind, or has no end token")
        self.end = int(tokenizer.eos_token_id)
        spell = _speller(json.loads(backend.to_str()).get("decoder"))
        added: dict[int, Any] = tokenizer.added_tokens_decoder
        self.tokens: dict[int, bytes] = {}
        found: dict[bytes, list[int]] = {}
        for token, number in tokenizer.get_vocab().items():
            known = added.get(number)
            if known is not None and known.special:
                continue
            text = token.encode() if known is not None else spell(token)
            if text:
                self.tokens[number] = text
                found.setdefault(text, []).append(number)
        self.by_bytes = {text: tuple(sorted(numbers)) for text, numbers in found.items()}
        self.longest = max(map(len, self.by_bytes), default=0)
        self.complete = all(bytes([byte]) in self.by_bytes for byte in range(256))
        """Whether every text can be written, so that no choice leads to a dead end."""

    def starts(self, text: bytes) -> Iterator[bytes]:
        """Yield the beginnings of `text` that are one token."""
        for length in range(1, min(len(text), self.longest) + 1):
            if text[:length] in self.by_bytes:
                yield text[:length]

    def writes(self, text: bytes) -> bool:
        """Whether tokens can write `text`."""
        if self.complete:
            return True
        reached = {0}
        for place in range(len(text)):
            if place in reached:
                reached.update(place + len(start) for start in self.starts(text[place:]))
        return len(text) in reached


class Node:
    """What was emitted of some choices, and what may follow."""

    __slots__ = ("_following", "_rests", "_vocabulary", "allowed", "array")

    def __init__(self, rests: Iterable[bytes], vocabulary: Vocabulary) -> None:
        self._rests = frozenset(rests)
        self._vocabulary = vocabulary
        self._following: dict[int, Node] = {}
        starts: set[bytes] = set()
        for rest in self._rests:
            for start in vocabulary.starts(rest):
                if start not in starts and vocabulary.writes(rest[len(start) :]):
                    starts.add(start)
        allowed = [token for start in starts for token in vocabulary.by_bytes[start]]
        if b"" in self._rests:
            allowed.append(vocabulary.end)
        self.allowed = tuple(sorted(allowed))
        self.array: npt.NDArray[np.int64] = np.array(self.allowed, dtype=np.int64)

    def after(self, token: int) -> "Node":
        """Return where `token`, which must be allowed and not the end, leads."""
        node = self._following.get(token)
        if node is None:
            text = self._vocabulary.tokens[token]
            rests = [rest[len(text) :] for rest in self._rests if rest.startswith(text)]
            node = self._following[token] = Node(rests, self._vocabulary)
        return node


class Guide:
    """Follows one completion. `ids` are the tokens allowed next, or `mask` says it for each; neither: all are."""

    ids: npt.NDArray[np.int64] | None = None
    mask: npt.NDArray[np.bool_] | None = None

    def advance(self, token: int) -> None:
        """Note that `token`, which is not the end, was emitted."""

    @property
    def forced(self) -> int | None:
        """The only token that may follow, where there is only one."""
        return int(self.ids[0]) if self.ids is not None and len(self.ids) == 1 else None


class ChoiceGuide(Guide):
    """Holds a completion to choices."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ids = node.array

    def advance(self, token: int) -> None:
        self.node = self.node.after(token)
        self.ids = self.node.array


class SchemaGuide(Guide):
    """Holds a completion to a JSON schema, by llguidance."""

    def __init__(self, matcher: Any, *, vocabulary_size: int, end: int) -> None:
        self._matcher = matcher
        self._size = vocabulary_size
        self._end = end
        self._look()

    def advance(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise BadModel(
                f"the schema's grammar refused a token: {one_line(Exception(self._matcher.get_error()))}"
            )
        self._look()

    def _look(self) -> None:
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        mask = np.unpackbits(bits, bitorder="little")[: self._size].astype(np.bool_)
        if len(mask) < self._size:
            mask = np.pad(mask, (0, self._size - len(mask)))
        if self._matcher.is_accepting() or not mask.any():
            mask[self._end] = True
        allowed = np.flatnonzero(mask)
        # A few tokens are handled as choices are: without a row as wide as the vocabulary.
        few = len(allowed) <= MAX_FEW
        self.ids, self.mask = (allowed.astype(np.int64), None) if few else (None, mask)


class Guides:
    """Makes the guides of one model.

    Args:
        tokenizer: the model's, of the fast kind.
        vocabulary_size: how many logits the model gives.
    """

    def __init__(self, tokenizer: Any, *, vocabulary_size: int) -> None:
        self.vocabulary = Vocabulary(tokenizer)
        self._tokenizer = tokenizer
        self._size = vocabulary_size
        self._grammar_tokenizer: Any = None
        self._roots: OrderedDict[tuple[str, ...], Node] = OrderedDict()

    def guide(self, constraint: Constraint | None) -> Guide:
        """Return a fresh guide. Raises `BadModel` where the model cannot write what is asked for."""
        if constraint is None:
            return Guide()
        if constraint.choices is None:
            return self._schema_guide(constraint.schema)
        root = self._roots.get(constraint.choices)
        if root is None:
            root = self._root(constraint.choices)
            self._roots[constraint.choices] = root
            if len(self._roots) > MAX_MACHINES:
                self._roots.popitem(last=False)
        else:
            self._roots.move_to_end(constraint.choices)
        return ChoiceGuide(root)

    def _root(self, choices: tuple[str, ...]) -> Node:
        written = [choice.encode() for choice in choices]
        for choice in written:
            if not choice or not self.vocabulary.writes(choice):
                raise BadModel(f"the model's tokens cannot write the answer {choice.decode()[:80]!r}")
        return Node(written, self.vocabulary)

    def _schema_guide(self, schema: Any) -> Guide:
        try:
            import llguidance
            from llguidance.hf import from_tokenizer
        except ImportError as error:
            raise EngineMissing(
                f"answers of a JSON schema need llguidance, which cannot be imported: {one_line(error)}"
            ) from None
        if self._grammar_tokenizer is None:
            self._grammar_tokenizer = from_tokenizer(self._tokenizer, n_vocab=self._size)
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(grammar_schema(schema), JSON_STYLE)
            matcher = llguidance.LLMatcher(self._grammar_tokenizer, grammar)
        except ValueError as error:
            raise BadModel(f"the answer's JSON schema is not understood: {one_line(error)}") from None
        if matcher.is_error():
            raise BadModel(
                f"the answer's JSON schema is not understood: {one_line(Exception(matcher.get_error()))}"
            )
        return SchemaGuide(matcher, vocabulary_size=self._size, end=self.vocabulary.end)


def _speller(decoder: Any) -> Any:
    """Return the function from a token as the vocabulary has it to the bytes it stands for."""
    kinds = set(_decoders(decoder))
    if "ByteLevel" in kinds:
        bytes_of = _byte_level()
        return lambda token: (
            bytes(bytes_of[char] for char in token) if all(c in bytes_of for c in token) else b""
        )
    if kinds & {"Metaspace", "Replace", "ByteFallback"}:
        return _spell_metaspace
    if kinds == {"Fuse"}:
        return str.encode
    raise BadModel(
        f"the model's tokenizer decodes by {', '.join(sorted(kinds)) or 'nothing'}; "
        "needed is ByteLevel, Metaspace, ByteFallback or Fuse"
    )


def _decoders(decoder: Any) -> Iterator[str]:
    if isinstance(decoder, dict):
        if decoder.get("type") == "Sequence":
            for inner in decoder["decoders"]:
                yield from _decoders(inner)
        else:
            yield str(decoder.get("type"))


def _spell_metaspace(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


def _byte_level() -> dict[str, int]:
    """Return the byte for each character of the byte-level alphabet: printable ones stand for themselves."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
