"""Token buckets and places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.limits import MAX_KEYS, Buckets, Places, Rate, address_key, is_loopback


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_then_its_rate() -> None:
    clock = Clock()
    buckets = Buckets({"message": Rate(2, 5)}, clock=clock)
    assert [buckets.allow("message:a") for _ in range(6)] == [True] * 5 + [False]
    clock.now = 0.5
    assert buckets.allow("message:a")
    assert not buckets.allow("message:a")
    clock.now = 1000.0
    assert buckets.level("message:a") == 5, "it never holds more than its burst"
    assert buckets.allow("message:a", 5)
    assert not buckets.allow("message:a", 0.5)


def test_keys_and_kinds_do_not_share_a_bucket_and_an_unknown_kind_has_no_limit() -> None:
    buckets = Buckets({"message": Rate(1, 1), "join": Rate(1, 1)}, clock=Clock())
    assert buckets.allow("message:a") and buckets.allow("message:b") and buckets.allow("join:a")
    assert not buckets.allow("message:a")
    assert all(buckets.allow("other:a", 10**9) for _ in range(3))


def test_a_refusal_takes_nothing() -> None:
    buckets = Buckets({"message": Rate(1, 4)}, clock=Clock())
    assert buckets.allow("message:a", 3)
    assert not buckets.allow("message:a", 2)
    assert buckets.allow("message:a", 1)


def test_a_flood_of_keys_is_bounded_and_does_not_empty_the_buckets_of_others() -> None:
    clock = Clock()
    buckets = Buckets({"message": Rate(1, 2)}, clock=clock)
    for number in range(2 * MAX_KEYS):
        buckets.allow(f"message:{number}")
    assert len(buckets) == MAX_KEYS
    clock.now = 10.0
    for number in range(3):
        buckets.allow(f"message:new{number}")
    assert len(buckets) == 3, "those that are full again are forgotten"


@given(
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), max_size=60),
    st.floats(0.1, 10),
    st.floats(1, 10),
)
def test_never_more_than_the_burst_and_the_rate_allow(
    steps: list[tuple[float, float]], per_s: float, burst: float
) -> None:
    clock = Clock()
    buckets = Buckets({"message": Rate(per_s, burst)}, clock=clock)
    taken = 0.0
    for pause, cost in steps:
        clock.now += pause
        if buckets.allow("message:a", cost):
            taken += cost
        assert taken <= burst + clock.now * per_s + 1e-6


def test_places_are_limited_in_all_and_by_key_and_come_back() -> None:
    places = Places(total=3, per_key=2)
    assert places.take("a") and places.take("a")
    assert not places.take("a")
    assert places.take("b")
    assert not places.free("c") and not places.take("c")
    places.give_back("a")
    assert places.free("c") and places.take("c")
    for key in "abc":
        places.give_back(key)
    assert len(places) == 0 and not places._held


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no address", "no address"),
    ],
)
def test_an_address_in_limits(address: str, key: str) -> None:
    assert address_key(address) == key


def test_what_is_this_machine_alone() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.0.1", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.0.2.7", "example.org", ""]))
