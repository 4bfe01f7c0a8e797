import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.policy.sampling import draw
from agents.training.batches import Asked, Choice, Decision, Pass, passes
from agents.training.scoring import exact_kl, from_logits, score

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

VOCABULARY = 6
LISTED = np.array([1, 3, 4], dtype=np.int64)
MASK = np.array([True, False, True, True, False, True])


def one_pass(temperature: float, top_p: float) -> Pass:
    """Return a pass of three completions: of listed tokens, under a mask, and of free text."""
    made = []
    for prompt, token, ids, mask in ((10, 3, LISTED, None), (11, 2, None, MASK), (12, 5, None, None)):
        asked = Asked((prompt,), (token,), None, "", temperature, top_p)
        made.append(Decision(asked, (Choice(0, token, ids, mask),)))
    (found,) = passes(made, max_tokens=100, max_decisions=10)
    return found


def sampled(logits: Any, place: int, temperature: float, top_p: float) -> dict[int, float]:
    """Return the engine's own log-probability of every token that it draws in many draws."""
    scores = logits[place].clone()
    allowed = (LISTED, np.flatnonzero(MASK), np.arange(VOCABULARY))[place]
    barred = torch.ones(VOCABULARY, dtype=torch.bool)
    barred[torch.from_numpy(allowed)] = False
    scores = scores.masked_fill(barred, -math.inf)
    count = 400
    columns, logprobs = draw(
        scores[None].expand(count, -1),
        temperatures=np.full(count, temperature),
        top_ps=np.full(count, top_p),
        uniforms=np.linspace(0, 1, count, endpoint=False),
    )
    return dict(zip(columns, logprobs, strict=True))


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.6, 0.7), (1.0, 0.3)])
def test_log_probabilities_are_the_engines(temperature: float, top_p: float) -> None:
    logits = torch.randn(3, VOCABULARY, generator=torch.Generator().manual_seed(2)) * 2
    one = one_pass(temperature, top_p)
    scores = from_logits(logits, one, device=torch.device("cpu"))
    for place, token in enumerate((3, 2, 5)):
        known = sampled(logits, place, temperature, top_p)
        if token in known:
            assert float(scores.logprobs[place]) == pytest.approx(known[token], abs=1e-5)
        else:  # outside the nucleus: possible all the same
            assert math.isfinite(float(scores.logprobs[place]))
    assert (scores.logprobs <= 0).all() and (scores.entropy >= 0).all()


def test_a_single_path_is_computed_without_a_mask_and_scores_as_in_a_tree(model_folder: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(str(model_folder), dtype=torch.float32).eval()
    made = []
    for prompt in (tuple(range(20, 60)), tuple(range(21, 61))):
        asked = Asked(prompt, (7, 8, 9), None, "", 1.0, 1.0)
        made.append(Decision(asked, tuple(Choice(place, 7 + place, None, None) for place in range(3))))
    (both,) = passes(made, max_tokens=1000, max_decisions=10)
    alone = [one for decision in made for one in passes([decision], max_tokens=1000, max_decisions=10)]
    assert not both.packs[0].is_path and all(one.packs[0].is_path for one in alone)
    with torch.no_grad():
        whole, *parts = (
            score(model, one, device=torch.device("cpu"), precision=nullcontext()).logprobs
            for one in (both, *alone)
        )
    torch.testing.assert_close(
        whole, torch.cat([parts[index] for index in both.decisions]), atol=1e-4, rtol=0
    )


def test_trees_side_by_side_score_as_each_alone(model_folder: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(str(model_folder), dtype=torch.float32).eval()
    made = []
    for length, branches in ((30, 2), (27, 1), (33, 3), (31, 1)):
        prompt = tuple((7 * length + at) % 300 + 20 for at in range(length))
        for branch in range(branches):
            asked = Asked((*prompt, 30 + branch), (7, 8), None, "", 1.0, 1.0)
            made.append(Decision(asked, tuple(Choice(at, 7 + at, None, None) for at in range(2))))

    def scored(max_trees: int) -> tuple[int, dict[int, Any]]:
        found = passes(made, max_tokens=40, max_decisions=100, least_tokens=1, max_trees=max_trees)
        values: dict[int, Any] = {}
        for one in found:
            with torch.no_grad():
                scores = score(model, one, device=torch.device("cpu"), precision=nullcontext())
            assert scores.logprobs.shape == (len(one.row),)
            values |= {
                index: scores.logprobs[one.starts[at] : one.starts[at + 1]]
                for at, index in enumerate(one.decisions)
            }
        return len(found), values

    (many, alone), (few, together) = scored(1), scored(4)
    assert (many, few) == (4, 1) and alone.keys() == together.keys()
    for index, values in alone.items():
        torch.testing.assert_close(together[index], values, atol=1e-4, rtol=0)


def test_entropy_is_that_of_what_was_allowed() -> None:
    scores = from_logits(torch.zeros(3, VOCABULARY), one_pass(1.0, 1.0), device=torch.device("cpu"))
    assert scores.entropy.tolist() == pytest.approx([math.log(3), math.log(4), math.log(6)])
    assert scores.logprobs.tolist() == pytest.approx([-math.log(3), -math.log(4), -math.log(6)])


def test_a_divergence_is_summed_over_what_was_allowed_and_left_open_in_free_text() -> None:
    generator = torch.Generator().manual_seed(5)
    new, other = (torch.randn(3, VOCABULARY, generator=generator) for _ in range(2))
    one = one_pass(1.0, 1.0)
    device = torch.device("cpu")
    kl = exact_kl(from_logits(new, one, device=device), from_logits(other, one, device=device), one)
    for place, allowed in ((0, LISTED), (1, np.flatnonzero(MASK))):
        p = torch.log_softmax(new[place][allowed], -1)
        q = torch.log_softmax(other[place][allowed], -1)
        assert float(kl[place]) == pytest.approx(float((p.exp() * (p - q)).sum()), abs=1e-6)
    assert math.isnan(float(kl[2]))
    same = from_logits(new, one, device=device)
    assert exact_kl(same, same, one)[:2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("learn_entropy", [False, True])
def test_gradients_are_finite_and_flow_through_the_entropy_where_it_is_learned(learn_entropy: bool) -> None:
    logits = torch.randn(3, VOCABULARY, generator=torch.Generator().manual_seed(1), requires_grad=True)
    one = one_pass(1.0, 0.9)
    scores = from_logits(logits, one, device=torch.device("cpu"), learn_entropy=learn_entropy)
    assert scores.entropy.requires_grad == learn_entropy
    (gradient,) = torch.autograd.grad(scores.logprobs.sum(), logits, retain_graph=True)
    assert torch.isfinite(gradient).all() and (gradient[0][[0, 2, 5]] == 0).all()
    if learn_entropy:
        (gradient,) = torch.autograd.grad(scores.entropy.sum(), logits)
        assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0
