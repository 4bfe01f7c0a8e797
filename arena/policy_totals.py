"""What a language model did in a run, summed up: for people, and for JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PolicyTotals:
    """Of one engine. Tokens are those that were asked for and drawn, also where nobody waited for them any more."""

    requests: int
    failures: int
    cancelled: int
    """Requests that were taken back: a deadline passed, or the match was over."""
    prompt_tokens: int
    cached_tokens: int
    """Of the prompts, what was not computed because an earlier prompt began with it."""
    completion_tokens: int
    queue_s: float
    """Seconds that requests waited, all together."""
    restarts: int
    cost: float

    @classmethod
    def of(cls, facts: Mapping[str, float]) -> "PolicyTotals":
        """Return the totals in what an engine and its queue counted, see `Policies.facts`."""

        def count(name: str) -> int:
            return round(facts.get(name, 0.0))

        return cls(
            requests=count("queue_requests"),
            failures=count("queue_failures"),
            cancelled=count("queue_cancelled"),
            prompt_tokens=count("engine_prompt_tokens"),
            cached_tokens=count("engine_cached_tokens"),
            completion_tokens=count("engine_completion_tokens"),
            queue_s=facts.get("queue_queue_s", 0.0),
            restarts=count("engine_restarts"),
            cost=facts.get("engine_cost", 0.0),
        )

    @property
    def cached_share(self) -> float:
        """Of the prompts' tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def mean_queue_s(self) -> float:
        """Seconds that a request waited, on average."""
        return self.queue_s / self.requests if self.requests else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return asdict(self) | {"cached_share": self.cached_share, "mean_queue_s": self.mean_queue_s}

    def line(self) -> str:
        """Return it in a line."""
        parts = [f"{self.requests:,} requests"]
        parts += [f"{self.failures:,} failed"] * bool(self.failures)
        parts += [f"{self.cancelled:,} taken back"] * bool(self.cancelled)
        parts.append(f"{self.prompt_tokens:,} prompt tokens, {self.cached_share:.0%} of them cached")
        parts.append(f"{self.completion_tokens:,} drawn")
        parts.append(f"{self.mean_queue_s * 1000:.0f} ms waited on average")
        parts += [f"restarted {self.restarts} times"] * bool(self.restarts)
        parts += [f"cost {self.cost:.4g}"] * bool(self.cost)
        return "; ".join(parts)
