"""One chance source per match, seeded or read back from a record.

The generator is SplitMix64 in counter form (Steele, Lea, Flood: "Fast splittable pseudorandom number
generators", OOPSLA 2014): its whole state is (seed, count), it is the same on every Python, and nothing
else in the process can touch it. The rules record every draw as an event, so a replay needs no generator.
"""

import hashlib
from collections.abc import Iterable, Sequence

from games.errors import BadChance, BadSeed, ChanceNeeded

MAX_SEED = 2**63 - 1
_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def check_seed(seed: int) -> int:
    """Return `seed` if it is an integer in 0 … 2**63 - 1, else raise `BadSeed`."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise BadSeed(f"seed: got {seed!r}, allowed are whole numbers from 0 to {MAX_SEED}")
    return seed


def derive_seed(seed: int, *path: int | str) -> int:
    """Return a seed in 0 … 2**63 - 1 that depends on `seed` and every part of `path`, and on nothing else."""
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in path)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & MAX_SEED


class Chance:
    """Draws from a seed. `count` is how many raw numbers were used, so (seed, count) is the whole state."""

    __slots__ = ("_key", "count", "seed")

    def __init__(self, seed: int, count: int = 0) -> None:
        self.seed = seed
        self.count = count
        self._key = _mix(seed)

    def draw(self, n: int) -> int:
        """Return a uniform integer in 0 … n-1; exact (by rejection), `n` at most 2**32."""
        limit = _MASK - (_MASK + 1) % n
        while True:
            self.count += 1
            value = _mix((self._key + self.count * _GOLDEN) & _MASK)
            if value <= limit:
                return value % n

    def order(self, n: int) -> list[int]:
        """Return a uniform permutation of 0 … n-1 (Fisher-Yates)."""
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = self.draw(i + 1)
            order[i], order[j] = order[j], order[i]
        return order

    def copy(self) -> "Chance":
        """Return an independent source that will make the same draws."""
        return Chance(self.seed, self.count)


class RecordedChance(Chance):
    """Draws given in advance: what a record says, or what a tree walk tries.

    Raises `BadChance` when a draw does not fit the question, `ChanceNeeded` when none is left.
    """

    __slots__ = ("_draws", "_next")

    def __init__(self, draws: Iterable[int | Sequence[int]]) -> None:
        super().__init__(0)
        self._draws = list(draws)
        self._next = 0

    def _take(self, outcomes: int) -> int | Sequence[int]:
        if self._next >= len(self._draws):
            raise ChanceNeeded(outcomes)
        self._next += 1
        return self._draws[self._next - 1]

    def draw(self, n: int) -> int:
        value = self._take(n)
        if type(value) is not int or not 0 <= value < n:
            raise BadChance(f"recorded draw {self._next}: got {value!r}, the rules draw from 0 to {n - 1}")
        return value

    def order(self, n: int) -> list[int]:
        value = self._take(n)
        if not isinstance(value, list | tuple) or len(value) != n or set(value) != set(range(n)):
            raise BadChance(f"recorded draw {self._next}: got {value!r}, the rules shuffle 0 to {n - 1}")
        return list(value)

    def copy(self) -> "RecordedChance":
        twin = RecordedChance(self._draws)
        twin._next = self._next
        return twin
