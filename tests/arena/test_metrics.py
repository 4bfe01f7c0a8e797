"""Metrics, beside those of the library where they take its place."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from arena.metrics import TURN_BUCKETS_S, Times


def samples(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    text = generate_latest(registry).decode()
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.floats(0, 10) | st.sampled_from(TURN_BUCKETS_S), max_size=20))
def test_times_are_counted_as_the_library_counts_them(values: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    times = Times("seconds", "Some.", bounds=TURN_BUCKETS_S)
    ours.register(times)
    histogram = Histogram("seconds", "Some.", buckets=TURN_BUCKETS_S, registry=theirs)
    for value in values:
        times.observe(value)
        histogram.observe(value)
    assert samples(ours) == samples(theirs)
