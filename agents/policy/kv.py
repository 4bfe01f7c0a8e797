"""Keys and values of attention: rows of running sequences, and a cache of prefixes.

A token's keys and values lie in its sequence's row at its position, so a query at position p sees exactly the slots
up to p, whatever the lengths beside it: there are no holes. Padded queries write to a slot that no query sees.

The prefix cache keeps copies in blocks of tokens. A block is known by a hash of all tokens up to its end, so it
serves every prompt that begins the same, of whichever seat or match.
"""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLOCK_TOKENS = 8
GROWTH_TOKENS = 128


class Shape:
    """Of what a model keeps for one token: layers, key and value heads, and their size."""

    def __init__(self, *, layers: int, heads: int, size: int) -> None:
        self.layers, self.heads, self.size = layers, heads, size

    def bytes_per_token(self, itemsize: int) -> int:
        """Return the bytes of one token's keys and values."""
        return 2 * self.layers * self.heads * self.size * itemsize


class Rows:
    """One row for each running sequence: a tensor [layers, 2, rows, heads, tokens + 1, size]."""

    def __init__(self, shape: Shape, *, dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device
        self.data: Any = None

    @property
    def room(self) -> tuple[int, int]:
        """Sequences that there is room for, and tokens of each."""
        return (0, 0) if self.data is None else (self.data.shape[2], self.data.shape[4] - 1)

    def bytes_of(self, room: tuple[int, int]) -> int:
        """Return what so much room takes."""
        return room[0] * (room[1] + 1) * self.shape.bytes_per_token(self.dtype.itemsize)

    def grown(self, rows: int, tokens: int) -> tuple[int, int]:
        """Return the room once `rows` sequences of `tokens` fit as well."""
        have_rows, have_tokens = self.room
        return max(rows, have_rows), max(have_tokens, -(-tokens // GROWTH_TOKENS) * GROWTH_TOKENS)

    def reserve(self, rows: int, tokens: int, *, used: int) -> None:
        """Make room for `rows` sequences of `tokens`; the first `used` rows keep what they hold."""
        import torch

        rows, tokens = self.grown(rows, tokens)
        if (rows, tokens) == self.room:
            return
        if not used:
            self.data = None
        old, have_tokens = self.data, self.room[1]
        shape = self.shape
        # Slots that were never written may be read at weight zero, where anything but a number would spoil the sum.
        self.data = torch.zeros(
            (shape.layers, 2, rows, shape.heads, tokens + 1, shape.size), dtype=self.dtype, device=self.device
        )
        if old is not None:
            self.data[:, :, :used, :, :have_tokens] = old[:, :, :used, :, :have_tokens]

    def move(self, source: int, target: int, *, tokens: int) -> None:
        """Copy the first `tokens` of row `source` to row `target`."""
        self.data[:, :, target, :, :tokens] = self.data[:, :, source, :, :tokens]

    def drop(self) -> None:
        """Let go of the memory."""
        self.data = None


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring rows in a forward pass; a row that computes fewer tokens than another of its group is padded.

    Args:
        first: row of the first sequence.
        tokens: for each row, one or more.
        positions: of the first of them.
    """

    first: int
    tokens: Sequence[Sequence[int]]
    positions: Sequence[int]

    @property
    def width(self) -> int:
        """Queries of each row."""
        return max(map(len, self.tokens))


@dataclass(frozen=True, slots=True)
class _Part:
    """A group in a window: its rows, where its queries lie, and the slots [rows, 1, queries, slots] they may see."""

    rows: slice
    queries: slice
    width: int
    mask: Any


class Window:
    """The rows of one forward pass, all of whose queries lie one after the other in a batch of one.

    What a model does to each token alone it so does to all at once, and only attention goes from group to group.
    Stands where the model expects its own cache; `attend` is its attention.
    """

    is_compileable = False
    is_sliding = (False,)

    def __init__(self, rows: Rows, groups: Sequence[Group]) -> None:
        import numpy as np
        import torch

        spare = rows.data.shape[4] - 1
        total = sum(group.width * len(group.tokens) for group in groups)
        ids, places, owners = (np.zeros(total, dtype=np.int64) for _ in range(3))
        slots = np.full(total, spare, dtype=np.int64)
        ends: list[int] = []
        parts: list[tuple[slice, slice, int, int]] = []
        at = 0
        for group in groups:
            width, began, length = group.width, at, 0
            for row, (own, start) in enumerate(zip(group.tokens, group.positions, strict=True), group.first):
                owners[at : at + width] = row
                at += width
                size = len(own)  # to the left of which is padding, so that a row's last query is its last
                ids[at - size : at] = own
                places[at - size : at] = slots[at - size : at] = range(start, start + size)
                length = max(length, start + size)
                ends.append(at - 1)
            count = len(group.tokens)
            parts.append((slice(group.first, group.first + count), slice(began, at), width, length))

        def there(values: Any) -> Any:
            return torch.from_numpy(values).to(rows.device)

        self.ids, self.places = there(ids)[None], there(places)[None]
        """Token ids and positions of the queries, int64 [1, queries]."""
        self.ends = torch.tensor(ends, device=rows.device)
        """The last query of each row."""
        self._data = rows.data
        self._owners, self._slots = there(owners), there(slots)
        self._parts = []
        for owned, queries, width, length in parts:
            place = self.places[0, queries].view(-1, 1, width, 1)
            hidden = torch.arange(length, device=rows.device) > place
            mask = torch.zeros(hidden.shape, dtype=rows.dtype, device=rows.device)
            self._parts.append(_Part(owned, queries, width, mask.masked_fill_(hidden, float("-inf"))))

    def update(
        self, keys: Any, values: Any, layer_idx: int, *args: Any, **extra: Any
    ) -> tuple["Window", Any]:
        """Store keys and values [1, heads, queries, size], and return this window and the layer's rows."""
        layer = self._data[layer_idx]
        layer[0].transpose(1, 2)[self._owners, self._slots] = keys[0].transpose(0, 1)
        layer[1].transpose(1, 2)[self._owners, self._slots] = values[0].transpose(0, 1)
        return self, layer

    def attend(self, query: Any, layer: Any, *, scale: float | None) -> Any:
        """Return what queries [1, heads, queries, size] see of a layer's rows, as [1, queries, heads, size]."""
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        _, heads, total, size = query.shape
        seen = torch.empty((1, total, heads, size), dtype=query.dtype, device=query.device)
        for part in self._parts:
            keys, values = layer[:, part.rows, :, : part.mask.shape[-1]]
            asked = query[0, :, part.queries].unflatten(1, (-1, part.width)).transpose(0, 1)
            found = scaled_dot_product_attention(
                asked, keys, values, attn_mask=part.mask, scale=scale, enable_gqa=heads != keys.shape[1]
            )
            seen[0, part.queries] = found.transpose(1, 2).flatten(0, 1)
        return seen

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the slots before the queries; positions are given, so nothing reads more into it."""
        return 0

    def __len__(self) -> int:
        return int(self._data.shape[0])


def attend_window(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    scaling: float | None = None,
    **extra: Any,
) -> tuple[Any, None]:
    """Compute attention as transformers calls for it, where the cache is a `Window`."""
    return key.attend(query, value, scale=scaling), None


class PrefixCache:
    """Keys and values of past prompts, in blocks; the block that was not used for longest goes first.

    Args:
        shape: of one token.
        max_bytes: of all blocks.
    """

    def __init__(self, shape: Shape, *, max_bytes: int, dtype: Any, device: Any) -> None:
        import torch

        itemsize = torch.empty((), dtype=dtype).element_size()
        self.capacity = max_bytes // (shape.bytes_per_token(itemsize) * BLOCK_TOKENS)
        self._shape, self._dtype, self._device = shape, dtype, device
        self._pool: Any = None
        self._blocks: OrderedDict[bytes, int] = OrderedDict()
        self._free: list[int] = []

    @property
    def blocks(self) -> int:
        """Blocks that are held."""
        return len(self._blocks)

    def lookup(self, keys: Sequence[bytes]) -> list[int]:
        """Return the blocks of the longest known beginning of `keys`."""
        found = []
        for key in keys:
            block = self._blocks.get(key)
            if block is None:
                break
            found.append(block)
        for key in reversed(keys[: len(found)]):  # a beginning must outlive what follows it
            self._blocks.move_to_end(key)
        return found

    def load(self, rows: Rows, *, first: int, blocks: Sequence[Sequence[int]]) -> None:
        """Copy each list of blocks to the beginning of its row, from row `first` on."""
        import torch

        # A row at a time, so that what is gathered is still in the processor's cache when it is written.
        for row, found in enumerate(blocks, first):
            if found:
                held = self._pool[torch.tensor(found, device=self._device)]
                _blocks_of(rows, row, len(found)).copy_(held.permute(1, 2, 3, 0, 4, 5))

    def save(self, rows: Rows, wanted: Sequence[tuple[int, Sequence[bytes]]]) -> None:
        """Keep the blocks of some rows: (row, keys of its blocks from the first on). Known ones are not copied."""
        import torch

        new: dict[bytes, tuple[int, int]] = {}
        known: set[bytes] = set()
        for row, keys in wanted:
            for place, key in enumerate(keys):
                if key in self._blocks:
                    known.add(key)
                else:
                    new.setdefault(key, (row, place))
            for key in reversed(keys):
                if key in self._blocks:
                    self._blocks.move_to_end(key)
        # None of those that are wanted gives way to another: without its beginning a block is of no use.
        chosen = list(new.items())[: max(self.capacity - len(known), 0)]
        targets = self._take(len(chosen))
        by_row: dict[int, list[tuple[int, int]]] = {}
        for (_, (row, place)), target in zip(chosen, targets, strict=True):
            by_row.setdefault(row, []).append((place, target))
        for row, pairs in by_row.items():
            places = torch.tensor([place for place, _ in pairs], device=self._device)
            held = _blocks_of(rows, row, max(place for place, _ in pairs) + 1).index_select(3, places)
            index = torch.tensor([target for _, target in pairs], device=self._device)
            self._pool[index] = held.permute(3, 0, 1, 2, 4, 5)
        for (key, _), target in reversed(list(zip(chosen, targets, strict=True))):
            self._blocks[key] = target

    def clear(self) -> None:
        """Forget everything, and let go of the memory."""
        self._blocks.clear()
        self._free.clear()
        self._pool = None

    def _take(self, count: int) -> list[int]:
        """Return `count` blocks that may be written."""
        while len(self._free) < count and self._grow():
            pass
        while len(self._free) < count:
            self._free.append(self._blocks.popitem(last=False)[1])
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def _grow(self) -> bool:
        """Make the pool larger, up to its capacity; return whether it did."""
        import torch

        have = 0 if self._pool is None else int(self._pool.shape[0])
        size = min(self.capacity, max(64, 2 * have))
        if size <= have:
            return False
        shape = self._shape
        pool = torch.empty(
            (size, shape.layers, 2, shape.heads, BLOCK_TOKENS, shape.size),
            dtype=self._dtype,
            device=self._device,
        )
        if have:
            pool[:have] = self._pool
        self._pool = pool
        self._free.extend(range(have, size))
        return True


def _blocks_of(rows: Rows, row: int, count: int) -> Any:
    """Return the first blocks of a row, as a view [layers, 2, heads, blocks, tokens, size]."""
    return rows.data[:, :, row, :, : count * BLOCK_TOKENS].unflatten(3, (count, BLOCK_TOKENS))


def block_keys(tokens: Sequence[int], *, root: bytes, known: Sequence[bytes] = ()) -> list[bytes]:
    """Return a key for each whole block of `tokens`, which stands for all tokens up to the block's end.

    Args:
        tokens: of a sequence.
        root: sets sequences of one model version apart from those of another.
        known: the keys of the first blocks, where they were computed before.
    """
    keys = list(known)
    for start in range(len(keys) * BLOCK_TOKENS, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        before = keys[-1] if keys else root
        block = array("q", tokens[start : start + BLOCK_TOKENS]).tobytes()
        keys.append(hashlib.blake2b(before + block, digest_size=16).digest())
    return keys
