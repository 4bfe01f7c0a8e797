"""What a server of a policy counts and measures, for Prometheus."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agents.policy.base import Completion

Facts = Callable[[], Mapping[str, Mapping[str, float]]]

GAUGES = frozenset({"waiting", "running", "up", "cached_blocks", "kv_cache_usage", "logprobs"})
"""Of the facts of engines and queues, those that also fall."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class PolicyMetrics:
    """The metrics of one server, in a registry of their own.

    Args:
        facts: counters and gauges by engine, see `Policies.facts`.
        open_requests: how many are answered just now.
    """

    def __init__(self, facts: Facts, *, open_requests: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_OfFacts(facts))
        self._requests = Counter(
            "arena_policy_http_requests", "Requests, by status.", ["status"], registry=self._registry
        )
        self._seconds = Histogram(
            "arena_policy_completion_seconds",
            "From a request to its completion.",
            buckets=SECONDS,
            registry=self._registry,
        )
        self._queue = Histogram(
            "arena_policy_queue_seconds",
            "That a completion waited for the model.",
            buckets=SECONDS,
            registry=self._registry,
        )
        Gauge(
            "arena_policy_http_open", "Completions that are asked for now.", registry=self._registry
        ).set_function(open_requests)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(str(status)).inc()
        if path == "/v1/chat/completions" and status == 200:
            self._seconds.observe(seconds)

    def completed(self, completion: Completion) -> None:
        """Measure one completion."""
        self._queue.observe(completion.queue_s)

    def render(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self._registry)


class _OfFacts(Collector):
    """Tells what engines and queues count themselves, as `arena_policy_<name>`."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for engine, facts in self._facts().items():
            for name, value in facts.items():
                family = families.get(name)
                if family is None:
                    gauge = name.partition("_")[2] in GAUGES
                    kind = GaugeMetricFamily if gauge else CounterMetricFamily
                    text = f"What the {name.replace('_', ' ', 1).replace('_', ' ')} is."
                    family = families[name] = kind(f"arena_policy_{name}", text, labels=["engine"])
                family.add_metric([engine], value)  # type: ignore[attr-defined]
        yield from families.values()
