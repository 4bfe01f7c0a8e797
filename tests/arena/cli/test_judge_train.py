"""`arena judge train` and what uses a trained judge: one file, its report, and one line for whatever is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.credit.learned import LearnedJudge
from arena.labellers import judge_path
from tests.replays.recording import make


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of hands of Kuhn poker between random players."""
    folder = tmp_path_factory.mktemp("records")
    for seed in range(60):
        (folder / f"{seed:02}.arena").write_bytes(make("kuhn", seed=seed))
    return folder


def test_a_judge_is_trained_and_labels_steps(arena: Any, records: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = arena("judge", "train", records, "--home", home, "--replicates", 2, "--json")
    assert told.exit_code == 0, told.stderr
    report = json.loads(told.stdout)
    path = judge_path(home, "kuhn")
    judge = LearnedJudge.load(path)
    assert (report["judge"], report["hash"], report["game"]) == (str(path), judge.hash, "kuhn")
    tried = report["held_out"]
    assert tried["low"] <= tried["accuracy"] <= tried["high"] and tried["decisions"] >= 40
    assert tried["lift"][1] <= tried["lift"][0] <= tried["lift"][2]
    assert report["provenance"]["records"] == 60 and report["provenance"]["left_out"] == {}
    assert report["provenance"]["play_on"] == "reference"
    record = records / "07.arena"
    options = ("--method", "adca", "--labels", "learned", "--team", "second", "--json")
    for extra in (("--home", home), ("--judge", path)):
        credit = arena("credit", record, *options, *extra)
        assert credit.exit_code == 0, credit.stderr
        notes = json.loads(credit.stdout)["notes"]
        assert notes == [f"labels: learned kuhn {judge.hash[:12]}"]


def test_the_same_records_give_the_same_judge(arena: Any, records: Path, tmp_path: Path) -> None:
    hashes = set()
    for name in ("a", "b"):
        told = arena("judge", "train", records, "--out", tmp_path / name, "--replicates", 1, "--json")
        hashes.add(json.loads(told.stdout)["hash"])
    assert len(hashes) == 1
    told = arena("judge", "train", records, "--out", tmp_path / "c", "--replicates", 1)
    assert "On held-out matches" in told.stdout and "What it takes for good added" in told.stdout


def test_records_that_give_no_credit_are_left_out_and_counted(
    arena: Any, records: Path, tmp_path: Path
) -> None:
    whole = (records / "00.arena").read_bytes()
    (tmp_path / "cut.arena").write_bytes(whole[:-20])
    (tmp_path / "no.arena").write_bytes(b"no record")
    told = arena("judge", "train", records, tmp_path, "--out", tmp_path / "j", "--replicates", 1, "--json")
    assert told.exit_code == 0, told.stderr
    left = json.loads(told.stdout)["provenance"]["left_out"]
    assert sum(left.values()) == 2 and "not_a_record" in left


def test_what_cannot_be_learned_from_is_refused_in_one_line(
    arena: Any, records: Path, tmp_path: Path
) -> None:
    def refused(*args: object) -> str:
        told = arena("judge", "train", *args, "--out", tmp_path / "judge")
        assert told.exit_code == 2
        assert not (tmp_path / "judge").exists()
        return told.stderr

    assert "too few to learn from" in refused(records / "00.arena")
    (tmp_path / "no.arena").write_bytes(b"no record")
    assert "none of 1 records gives credit" in refused(tmp_path / "no.arena")
    (tmp_path / "w.arena").write_bytes(make("werewolf", seats=7))
    assert "a judge knows one game" in refused(records / "00.arena", tmp_path / "w.arena")


def test_learned_labels_without_a_judge_or_with_another_games(
    arena: Any, records: Path, tmp_path: Path
) -> None:
    record = records / "00.arena"
    told = arena("credit", record, "--method", "adca", "--labels", "learned", "--home", tmp_path)
    assert told.exit_code == 2
    assert "there is no trained judge of kuhn" in told.stderr
    trained = tmp_path / "kuhn.json"
    arena("judge", "train", records, "--out", trained, "--replicates", 1)
    other = tmp_path / "w.arena"
    other.write_bytes(make("werewolf", seats=7))
    told = arena("credit", other, "--method", "adca", "--labels", "learned", "--judge", trained)
    assert told.exit_code == 2 and "the judge knows kuhn rules" in told.stderr
    trained.write_text(trained.read_text().replace('"margin": 0.1', '"margin": 0.2'))
    told = arena("credit", record, "--method", "adca", "--labels", "learned", "--judge", trained)
    assert told.exit_code == 2 and "its hash is not that of what it holds" in told.stderr


def test_the_tiny_model_labels_steps(arena: Any, records: Path, tmp_path: Path) -> None:
    record, home = records / "07.arena", tmp_path / "home"
    options = ("--method", "adca", "--labels", "model", "--team", "second", "--json", "--home", home)
    first = arena("credit", record, *options)
    assert first.exit_code == 0, first.stderr
    document = json.loads(first.stdout)
    assert document["cost"]["model_calls"] in (0, 1) and document["notes"][0].startswith("labels: model")
    assert {step["label"] for step in document["steps"]} <= {"good", "bad", None}
    again = json.loads(arena("credit", record, *options).stdout)
    if any(step["label"] for step in document["steps"]):
        assert again["cost"]["model_calls"] == 0
    assert [step["label"] for step in again["steps"]] == [step["label"] for step in document["steps"]]
