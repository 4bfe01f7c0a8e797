"""Shapley values of a small cooperative game, exact and by sampled orders.

Members are numbered from 0, a coalition is the bit mask of its members. Source: L. S. Shapley, "A value for n-person
games" (1953); antithetic orders after R. Mitchell et al., "Sampling Permutations for Shapley Value Estimation",
JMLR 23 (2022).
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import factorial, fsum

MAX_EXACT = 16
"""Members up to which all coalitions are looked at, at most; a method may draw the line sooner."""


@lru_cache(maxsize=MAX_EXACT)
def weights(members: int) -> tuple[float, ...]:
    """Return, by the size of the coalition that a member joins, the share of the orders in which it joins that one."""
    whole = factorial(members)
    return tuple(factorial(size) * factorial(members - 1 - size) / whole for size in range(members))


def marginals(values: Sequence[float], *, members: int) -> list[list[tuple[float, float]]]:
    """Return, by member, (weight, what it adds) for every coalition of the others; `values` are by bit mask."""
    if len(values) != 1 << members:
        raise ValueError(f"values: got {len(values)}, {members} members have {1 << members} coalitions")
    by_size = weights(members)
    return [
        [
            (by_size[mask.bit_count()], values[mask | 1 << member] - values[mask])
            for mask in range(1 << members)
            if not mask >> member & 1
        ]
        for member in range(members)
    ]


def shapley(values: Sequence[float], *, members: int) -> list[float]:
    """Return the Shapley values, which sum to what all are worth less what none are worth."""
    return [fsum(weight * added for weight, added in rows) for rows in marginals(values, members=members)]


def influence(values: Sequence[float], *, members: int) -> list[float]:
    """Return how much hangs on each member: the mean size of what it adds, 0 for a dummy and only for a dummy."""
    return [
        fsum(weight * abs(added) for weight, added in rows) for rows in marginals(values, members=members)
    ]


def antithetic(members: int, rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a uniformly drawn order of the members and its reverse."""
    order = list(range(members))
    rng.shuffle(order)
    return tuple(order), tuple(reversed(order))


def chain(order: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (member, coalition before it joins, coalition after) along an order."""
    mask = 0
    for member in order:
        yield member, mask, mask | 1 << member
        mask |= 1 << member


def along(orders: Sequence[Sequence[int]], values: Mapping[int, float], *, members: int) -> list[list[float]]:
    """Return, by member, what it adds in each of the orders."""
    added: list[list[float]] = [[] for _ in range(members)]
    for order in orders:
        for member, before, after in chain(order):
            added[member].append(values[after] - values[before])
    return added
