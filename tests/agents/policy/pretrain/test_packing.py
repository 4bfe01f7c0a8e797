"""The tree computes what each prompt alone would."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.policy.pretrain.packing import ROOT, Encoded, Pack, pack

TOKENS = st.integers(5, 9)
DECISIONS = st.lists(
    st.builds(
        Encoded,
        st.lists(TOKENS, min_size=1, max_size=12).map(tuple),
        st.lists(TOKENS, min_size=1, max_size=4).map(tuple),
        st.sampled_from(("a vote", "b speak")),
    ),
    min_size=1,
    max_size=12,
)


def _path(tree: Pack, node: int) -> list[int]:
    tokens: list[int] = []
    while node != ROOT:
        tokens.append(int(tree.tokens[node]))
        node = int(tree.parents[node])
    return tokens[::-1]


@given(DECISIONS, st.integers(1, 40), st.integers(1, 5))
def test_every_decision_is_a_path_in_one_tree(
    decisions: Sequence[Encoded], max_nodes: int, max_decisions: int
) -> None:
    trees = list(pack(decisions, max_nodes=max_nodes, max_decisions=max_decisions))
    read = []
    for tree in trees:
        assert len(tree.kinds) <= max_decisions
        assert len(tree.tokens) <= max_nodes or len(tree.kinds) == 1
        for index, kind in enumerate(tree.kinds):
            targets = np.flatnonzero(tree.decisions == index)
            answer = tuple(tree.targets[targets].tolist())
            prompt = tuple(_path(tree, int(tree.sources[targets[0]])))
            assert _path(tree, int(tree.sources[targets[-1]])) == [*prompt, *answer[:-1]]
            read.append(Encoded(prompt, answer, kind))
    assert read == list(decisions)


@given(DECISIONS)
def test_a_node_sees_its_path_and_stands_at_its_depth(decisions: Sequence[Encoded]) -> None:
    for tree in pack(decisions):
        seen = tree.ancestors()
        for node in range(len(tree.tokens)):
            order = np.flatnonzero(seen[node])
            assert tree.tokens[order].tolist() == _path(tree, node)
            assert tree.depths[order].tolist() == list(range(len(order)))
        assert tree.is_path == bool((seen == np.tril(np.ones_like(seen))).all())


def test_what_is_shared_is_one_node() -> None:
    (tree,) = pack([Encoded((5, 6, 7), (8, 4), "a"), Encoded((5, 6, 9), (8, 4), "a")])
    assert tree.tokens.tolist() == [5, 6, 7, 8, 9, 8]


def test_the_model_answers_in_a_tree_as_it_would_alone() -> None:
    torch = pytest.importorskip("torch")
    from agents.policy.pretrain.model import make_model
    from agents.policy.pretrain.tokenizer import make_tokenizer
    from agents.policy.pretrain.training import node_logits

    model = make_model(make_tokenizer(["say", "trust", "3"], context_tokens=64), seed=1).eval()
    decisions = [
        Encoded((1, 20, 30, 40, 50), (60, 70, 4), "a"),
        Encoded((1, 20, 30, 41), (60, 4), "a"),
        Encoded((1, 20, 30, 40, 51, 52), (61, 4), "b"),
    ]
    (tree,) = pack(decisions)
    with torch.inference_mode():
        together = node_logits(model, tree)[torch.from_numpy(tree.sources.astype(np.int64))]
        alone = []
        for decision in decisions:
            ids = torch.tensor([[*decision.prompt, *decision.answer[:-1]]])
            alone.append(model(input_ids=ids).logits[0, len(decision.prompt) - 1 :])
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)
