import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.policy.sampling import draw

torch = pytest.importorskip("torch")

SCORES = st.lists(st.floats(-30, 30) | st.just(-math.inf), min_size=1, max_size=12).filter(
    lambda row: any(score > -math.inf for score in row)
)


def draw_one(
    row: list[float], *, temperature: float = 1.0, top_p: float = 1.0, uniform: float = 0.5
) -> tuple[int, float]:
    columns, logprobs = draw(
        torch.tensor([row]),
        temperatures=np.array([temperature]),
        top_ps=np.array([top_p]),
        uniforms=np.array([uniform]),
    )
    return columns[0], logprobs[0]


def expected(row: list[float], temperature: float, top_p: float) -> list[float]:
    """Return the probabilities by the definition, one column at a time."""
    scores = [score / temperature for score in np.float32(row).tolist()]
    peak = max(scores)
    weights = [math.exp(score - peak) for score in scores]
    probabilities = [weight / sum(weights) for weight in weights]
    kept, mass = set(), 0.0
    for column in sorted(range(len(row)), key=lambda column: -scores[column]):
        if mass >= top_p and kept and top_p < 1:
            break
        kept.add(column)
        mass += probabilities[column]
    return [p / mass if column in kept else 0.0 for column, p in enumerate(probabilities)]


@settings(deadline=None)
@given(SCORES, st.floats(0.1, 4), st.floats(0, 1, exclude_max=True))
def test_the_log_probability_is_that_of_the_distribution_drawn_from(
    row: list[float], temperature: float, uniform: float
) -> None:
    column, logprob = draw_one(row, temperature=temperature, uniform=uniform)
    wanted = expected(row, temperature, 1.0)
    assert row[column] > -math.inf
    assert logprob == pytest.approx(math.log(wanted[column]), abs=1e-9)
    below = sum(wanted[:column])
    assert below - 1e-9 <= uniform <= below + wanted[column] + 1e-9


def test_the_nucleus_is_the_fewest_likeliest_with_the_mass() -> None:
    row = [math.log(p) for p in (0.1, 0.5, 0.25, 0.15)]
    for top_p, kept in ((0.4, {1}), (0.6, {1, 2}), (0.8, {1, 2, 3}), (1.0, {0, 1, 2, 3})):
        drawn = {draw_one(row, top_p=top_p, uniform=i / 200) for i in range(200)}
        assert {column for column, _ in drawn} == kept
        wanted = expected(row, 1.0, top_p)
        for column, logprob in drawn:
            assert logprob == pytest.approx(math.log(wanted[column]), abs=1e-6)


def test_temperature_zero_takes_the_likeliest_for_certain() -> None:
    assert draw_one([0.0, 3.0, 2.9], temperature=0) == (1, 0.0)
    columns, logprobs = draw(
        torch.tensor([[0.0, 3.0], [5.0, -math.inf]]),
        temperatures=np.array([0.0, 1.0]),
        top_ps=np.ones(2),
        uniforms=np.array([0.0, 0.999]),
    )
    assert columns == [1, 0] and logprobs == [0.0, 0.0]


@settings(deadline=None)
@given(st.lists(st.tuples(SCORES, st.floats(0, 1, exclude_max=True)), min_size=1, max_size=5))
def test_a_row_draws_the_same_whatever_its_neighbours(rows: list[tuple[list[float], float]]) -> None:
    width = max(len(row) for row, _ in rows)
    scores = torch.full((len(rows), width), -math.inf)
    for i, (row, _) in enumerate(rows):
        scores[i, : len(row)] = torch.tensor(row)
    columns, logprobs = draw(
        scores,
        temperatures=np.ones(len(rows)),
        top_ps=np.ones(len(rows)),
        uniforms=np.array([uniform for _, uniform in rows]),
    )
    for (row, uniform), column, logprob in zip(rows, columns, logprobs, strict=True):
        alone = draw_one(row, uniform=uniform)
        assert (column, pytest.approx(logprob, abs=1e-9)) == alone


def test_frequencies_follow_the_probabilities() -> None:
    probabilities = [0.2, 0.05, 0.0, 0.75]
    row = [math.log(p) if p else -math.inf for p in probabilities]
    count = 1000
    columns, _ = draw(
        torch.tensor([row] * count),
        temperatures=np.ones(count),
        top_ps=np.ones(count),
        uniforms=(np.arange(count) + 0.5) / count,
    )
    assert np.bincount(columns, minlength=4).tolist() == pytest.approx([200, 50, 0, 750], abs=1)
