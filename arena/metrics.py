"""What a server counts and measures, for Prometheus."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

TURN_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """The metrics of one server, in a registry of their own. Labels never hold a name, a token or an address."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: Any = {"registry": self.registry}
        self.matches = Counter("arena_matches_ended", "Matches that ended, by how.", ["how"], **made)
        self.opened = Counter("arena_connections_opened", "Connections that were opened.", **made)
        self.refused = Counter(
            "arena_connections_refused", "Connections refused at the door, by cause.", ["cause"], **made
        )
        self.dropped = Counter(
            "arena_connections_dropped", "Connections that the server ended, by cause.", ["cause"], **made
        )
        self.requests = Counter("arena_http_requests", "HTTP requests, by status.", ["status"], **made)
        self.turn_seconds = Times(
            "arena_turn_seconds",
            "The server's own time from the last action to the next turn.",
            bounds=TURN_BUCKETS_S,
        )
        self.registry.register(self.turn_seconds)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value `read` gives when it is asked for."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def count(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a number that only grows, which `read` gives when it is asked for: cheaper than counting here."""
        self.registry.register(_Count(name, text, read))

    def render(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)


class Times(Collector):
    """A histogram that one thread alone adds to, and so without a lock for every value. `bounds` rise."""

    def __init__(self, name: str, text: str, *, bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Add a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def collect(self) -> Iterator[Metric]:
        buckets = zip([*map(floatToGoString, self._bounds), "+Inf"], accumulate(self._counts), strict=True)
        yield HistogramMetricFamily(self._name, self._text, buckets=list(buckets), sum_value=self._sum)


class _Count(Collector):
    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._name = name
        self._text = text
        self._read = read

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._name, self._text, value=self._read())
