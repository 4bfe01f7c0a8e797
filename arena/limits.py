"""Limits: token buckets by key, and how many connections there may be.

A bucket holds `burst` and fills at `per_s`; what costs more than it holds is refused. A bucket that is full
again is forgotten, and there are at most `MAX_KEYS` of a kind, the oldest going first, so that no flood of
keys fills the memory.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

MAX_KEYS = 10_000

MESSAGE, JOIN, AUTH, CONNECT, REQUEST = "message", "join", "auth", "connect", "request"
"""What is limited: messages of one peer, requests for seats, failed tokens, new connections, HTTP requests."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`per_s` a second in the long run, `burst` at once."""

    per_s: float
    burst: float


DEFAULT_RATES: Mapping[str, Rate] = {
    MESSAGE: Rate(100, 500),
    JOIN: Rate(5, 25),
    AUTH: Rate(0.2, 10),
    CONNECT: Rate(20, 100),
    REQUEST: Rate(20, 100),
}


class Buckets:
    """Token buckets of every kind, by key.

    Args:
        rates: by kind; a kind that is not named has no limit.
        clock: seconds, never going back.
    """

    def __init__(self, rates: Mapping[str, Rate], *, clock: Callable[[], float]) -> None:
        self._rates = dict(rates)
        self._clock = clock
        self._levels: dict[str, OrderedDict[str, tuple[float, float]]] = {
            kind: OrderedDict() for kind in rates
        }

    def allow(self, key: str, cost: float = 1.0) -> bool:
        """Take `cost` from the bucket `kind:whose`; False where it does not hold as much, and nothing is taken."""
        kind, _, whose = key.partition(":")
        rate = self._rates.get(kind)
        if rate is None:
            return True
        levels, now = self._levels[kind], self._clock()
        level = self.level(key)
        levels.pop(whose, None)
        allowed = cost <= level
        levels[whose] = (level - cost if allowed else level, now)
        if len(levels) > MAX_KEYS:
            self._forget(levels, rate, now)
        return allowed

    def level(self, key: str) -> float:
        """Return what the bucket `kind:whose` holds; without end where the kind has no limit."""
        kind, _, whose = key.partition(":")
        rate = self._rates.get(kind)
        if rate is None:
            return math.inf
        now = self._clock()
        level, since = self._levels[kind].get(whose, (rate.burst, now))
        return min(rate.burst, level + (now - since) * rate.per_s)

    def __len__(self) -> int:
        return sum(map(len, self._levels.values()))

    @staticmethod
    def _forget(levels: OrderedDict[str, tuple[float, float]], rate: Rate, now: float) -> None:
        full_after = rate.burst / rate.per_s
        while levels:
            _, (_, since) = next(iter(levels.items()))
            if len(levels) <= MAX_KEYS and now - since < full_after:
                return
            levels.popitem(last=False)


class Places:
    """Counts what is held at the same time, in all and by key, up to a limit each."""

    def __init__(self, *, total: int, per_key: int) -> None:
        self.total = total
        self.per_key = per_key
        self._held: Counter[str] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def free(self, key: str) -> bool:
        """Whether a place is left for `key`."""
        return self._count < self.total and self._held[key] < self.per_key

    def take(self, key: str) -> bool:
        """Take one place for `key`; False where none is left."""
        if not self.free(key):
            return False
        self._held[key] += 1
        self._count += 1
        return True

    def give_back(self, key: str) -> None:
        """Give back a place that `take` gave."""
        self._count -= 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]


def address_key(address: str) -> str:
    """Return what stands for an address in limits: itself, or the network of an IPv6 address (its first 64 bits)."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> 64 << 64)) + "/64"
    return str(parsed)


def is_loopback(host: str) -> bool:
    """Whether a host to listen on is this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
