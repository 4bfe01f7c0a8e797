import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.credit.base import Credit, StepCredit
from agents.credit.learned import Example, LearnedJudge, LearnedLabeller, examples, featured, train
from agents.credit.line import read_line
from agents.errors import BadCredit, BadLabels
from tests.agents.credit.labelling import labels, play
from tests.replays.recording import encode as encoded
from tests.replays.recording import entries, header, read

PROVENANCE = {"from": "a test"}


def synthetic(matches: int = 30, *, each: int = 12, noise: float = 0.1, seed: int = 1) -> list[Example]:
    """Return decisions of which those with the feature `kind` help, but for some noise."""
    rng = random.Random(seed)
    found = []
    for match in range(matches):
        for _ in range(each):
            kind = rng.random() < 0.5
            helped = kind ^ (rng.random() < noise)
            added = rng.uniform(0.1, 0.5) * (1 if helped else -1)
            found.append(Example({"kind": float(kind), "other": rng.random()}, added, str(match)))
    return found


def trained(given: Sequence[Example] | None = None, *, game: str = "avalon") -> LearnedJudge:
    return train(synthetic() if given is None else given, game=game, provenance=PROVENANCE)


def test_it_learns_what_helps_and_says_how_well() -> None:
    judge = trained()
    assert judge.value({"kind": 1.0}) == 1 and judge.value({"kind": 0.0}) == -1
    tried = judge.held_out
    assert tried.low <= tried.accuracy <= tried.high
    assert 0.85 < tried.accuracy < 0.95 and tried.majority < 0.6 < tried.low
    assert 0.3 < tried.lift_low < tried.lift < tried.lift_high < 0.6
    assert (tried.examples, tried.matches) == (360, 30)
    assert judge.provenance["from"] == "a test" and judge.provenance["examples"] == 360


def test_where_there_is_nothing_to_learn_it_says_so() -> None:
    tried = trained(synthetic(noise=0.5)).held_out
    assert tried.low < 0.55 and abs(tried.accuracy - 0.5) < 0.12
    assert tried.lift_low < 0 < tried.lift_high


def test_the_weights_are_where_the_loss_is_flat() -> None:
    given = synthetic(matches=10)
    judge = train(given, game="avalon", provenance={}, penalty=2.0)
    names = sorted(judge.weights)
    pulls = np.zeros(len(names) + 1)
    mean = np.mean([abs(one.added) for one in given])
    for one in given:
        error = (judge.probability(one.features) - one.helped) * abs(one.added) / mean
        pulls += [*(error * one.features.get(name, 0.0) for name in names), error]
    pulls[:-1] += [2.0 * judge.weights[name] for name in names]
    assert np.abs(pulls).max() < 0.05


def test_the_same_examples_give_the_same_judge() -> None:
    assert trained().hash == trained().hash
    assert trained(synthetic(seed=2)).hash != trained().hash


def test_unsure_is_neutral() -> None:
    judge = replace(trained(), margin=0.49)
    assert judge.value({"kind": 1.0}) == 0
    assert trained().value({"unheard of": 1.0}) in (-1, 0, 1)
    assert 0 <= trained().probability({"kind": 1e9}) <= 1


@pytest.mark.parametrize(
    "given",
    [
        synthetic(matches=4, each=50),
        synthetic(matches=30, each=1),
        [one._replace(added=0.2) for one in synthetic()],
        [],
    ],
)
def test_too_little_to_learn_from_is_refused(given: list[Example]) -> None:
    with pytest.raises(BadCredit, match="too few to learn from"):
        trained(given)


@pytest.mark.parametrize(("margin", "penalty"), [(0.5, 1.0), (-0.1, 1.0), (0.1, 0.0), (float("nan"), 1.0)])
def test_settings_that_mean_nothing_are_refused(margin: float, penalty: float) -> None:
    with pytest.raises(BadCredit, match="margin"):
        train(synthetic(), game="avalon", provenance={}, margin=margin, penalty=penalty)


def test_it_is_kept_with_its_hash(tmp_path: Path) -> None:
    judge, path = trained(), tmp_path / "deep" / "avalon.json"
    judge.save(path)
    assert LearnedJudge.load(path) == judge
    assert json.loads(path.read_text())["hash"] == judge.hash
    assert [one.name for one in path.parent.iterdir()] == ["avalon.json"]


def broken(judge: LearnedJudge, path: Path, kind: str) -> None:
    judge.save(path)
    data = json.loads(path.read_text())
    match kind:
        case "a weight changed":
            data["weights"]["kind"] += 1
        case "its provenance changed":
            data["provenance"]["from"] = "elsewhere"
        case "a newer format":
            data["format"] = 2
        case "no weights":
            del data["weights"]
        case "no object":
            data = [1]
    text = json.dumps(data)
    path.write_text(text[: len(text) // 2] if kind == "cut short" else text)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("a weight changed", "its hash is not that of what it holds"),
        ("its provenance changed", "its hash is not that of what it holds"),
        ("a newer format", "a judge of format 2, this version reads 1"),
        ("no weights", "no judge of decisions"),
        ("no object", "no judge of decisions"),
        ("cut short", "no judge of decisions"),
    ],
)
def test_a_file_that_is_no_judge_is_refused_in_one_line(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "judge.json"
    broken(trained(), path, kind)
    with pytest.raises(BadLabels) as caught:
        LearnedJudge.load(path)
    assert words in str(caught.value) and "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadLabels, match="cannot be read: No such file"):
        LearnedJudge.load(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadLabels, match="cannot be written"):
        trained().save(tmp_path / "file" / "judge.json")


def test_the_features_of_a_decision_are_facts() -> None:
    record = play("avalon", lambda *_: None, seats=5, seed=3)
    line = read_line(record)
    for seat, decisions in featured(line, range(5)).items():
        assert [taken for taken, _ in decisions] == list(line.taken[seat])
        for taken, facts in decisions:
            assert facts[f"asked {taken.space.label}"] == 1.0
            assert facts[f"role {line.outcome.roles[seat]}"] == 1.0
            assert all(0 <= value <= 1 for value in facts.values())


@pytest.mark.parametrize(("game", "seats"), [("kuhn", 2), ("werewolf", 9), ("forge", 3)])
def test_every_game_has_features(game: str, seats: int) -> None:
    head = header(game, seats=seats, seed=2)
    line = read_line(read(encoded(head, *entries(head))))
    found = featured(line, range(seats))
    assert all(facts for decisions in found.values() for _, facts in decisions)


def test_examples_are_the_free_decisions_that_made_a_difference() -> None:
    record = play("avalon", lambda *_: None, seats=5, seed=3)
    line = read_line(record)
    votes = [taken for taken in line.taken[0] if taken.space.label in ("vote", "speak")]
    quest = next(
        taken
        for decisions in line.taken
        for taken in decisions
        if getattr(taken.space, "options", None) == ("success",)
    )
    steps = (
        StepCredit(votes[0].ply, 0, 0.3, contribution=0.2),
        StepCredit(votes[1].ply, 0, 0.3, contribution=-0.2),
        StepCredit(votes[2].ply, 0, 0.3, contribution=0.0),
        StepCredit(quest.ply, quest.seat, 0.3, contribution=0.5),
        StepCredit(votes[3].ply, 0, 0.3),
    )
    found = examples(record, [Credit("leave-one-out", "good", 1.0, (), steps)])
    assert [one.helped for one in found] == [True, False]
    assert len({one.match for one in found}) == 1 and found[0].match


def test_it_labels_matches_of_its_game_alone() -> None:
    record = play("avalon", lambda *_: None, seats=5, seed=3)
    line = read_line(record)
    weights = {"asked vote": 5.0, "asked propose": -5.0}
    judge = replace(trained(), weights=weights, bias=0.0)
    labeller = LearnedLabeller(judge)
    for seat, labelled in labels(labeller, record).items():
        for taken, step in zip(line.taken[seat], labelled.steps, strict=True):
            free = not taken.forced and len(getattr(taken.space, "options", "ab")) > 1
            expected = {"vote": 1, "propose": -1}.get(taken.space.label, 0)
            assert step.value == (expected if free else 0)
    assert labeller.version == f"learned avalon {judge.hash[:12]}"
    kuhn = play("kuhn", lambda *_: None, seats=2)
    with pytest.raises(BadLabels, match="the judge knows avalon rules"):
        labels(labeller, kuhn)
    other = LearnedLabeller(replace(judge, rules="0"))
    with pytest.raises(BadLabels, match="rules 0"):
        asyncio.run(other.label(record, seats=[0]))
