"""Training a judge of decisions from records: which records, what is told on the way, and what it came from."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.credit.learned import DEFAULT_MARGIN, LearnedJudge
from agents.errors import BadCredit
from arena.judge_training import records_in, train_judge
from replays.record import SeatInfo
from tests.replays.recording import encode, entries, header, make


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return hands of Kuhn poker between random players."""
    folder = tmp_path_factory.mktemp("records")
    paths = [folder / f"{seed:02}.arena" for seed in range(60)]
    for seed, path in enumerate(paths):
        path.write_bytes(make("kuhn", seed=seed))
    return paths


def train(paths: list[Path], **settings: Any) -> LearnedJudge:
    return asyncio.run(train_judge(paths, **{"step_replicates": 1, **settings}))


def touched(folder: Path, *names: str) -> list[Path]:
    found = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        found.append(path)
    return found


def test_directories_are_searched_and_files_taken_as_they_are_named(tmp_path: Path) -> None:
    b, a, deep, _ = touched(tmp_path, "d/b.arena", "d/a.arena", "d/sub/c.arena", "d/notes.txt")
    (other,) = touched(tmp_path, "other.txt")
    assert records_in([tmp_path / "d"]) == [a, b, deep]
    assert records_in([other, tmp_path / "d"]) == [other, a, b, deep], "in the order they are named"
    gone = tmp_path / "gone.arena"
    assert records_in([gone]) == [gone], "reading says what is wrong with it"


def test_a_record_is_taken_once(tmp_path: Path) -> None:
    a, b = touched(tmp_path, "d/a.arena", "d/b.arena")
    assert records_in([b, tmp_path / "d", tmp_path, a]) == [b, a]
    assert records_in([]) == []
    (tmp_path / "empty").mkdir()
    assert records_in([tmp_path / "empty"]) == []


def test_a_judge_says_where_it_came_from(records: list[Path]) -> None:
    judge = train(records, seed=3)
    assert (judge.game, judge.margin) == ("kuhn", DEFAULT_MARGIN)
    given = dict(judge.provenance)
    assert given.pop("examples") >= 40 and given.pop("matches") >= 5 and given.pop("penalty") > 0
    assert given == {
        "method": "leave-one-out of single decisions",
        "reference": "scripted",
        "stand_in": None,
        "replicates": 1,
        "play_on": "reference",
        "hidden": "fixed",
        "replay_seed": 3,
        "seed": 3,
        "records": 60,
        "left_out": {},
    }


def test_settings_reach_the_replays_and_the_judge(records: list[Path]) -> None:
    judge = train(records, margin=0.2, reference="random", hidden="resampled", step_replicates=2)
    told = judge.provenance
    assert (judge.margin, told["reference"], told["hidden"], told["replicates"]) == (
        0.2,
        "random",
        "resampled",
        2,
    )
    with pytest.raises(BadCredit, match=r"^judge: got margin 0\.5 and "):
        train(records, margin=0.5)


def test_the_seed_decides_what_is_replayed(records: list[Path]) -> None:
    one, same, other = (train(records, reference="random", seed=seed) for seed in (1, 1, 2))
    assert one == same and one.hash == same.hash != other.hash


def test_it_learns_that_a_king_is_not_folded(records: list[Path]) -> None:
    judge = train(records, step_replicates=4, reference="random")
    fold, call = (judge.weights[f"answer {move} with card 2"] for move in ("fold", "call"))
    assert fold < 0 < call
    assert judge.probability({"answer fold with card 2": 1.0}) < judge.probability(
        {"answer call with card 2": 1.0}
    )


def test_progress_is_told_after_every_match_left_out_or_not(records: list[Path], tmp_path: Path) -> None:
    bad = [tmp_path / name for name in ("gone.arena", "no.arena", "cut.arena", "other.arena")]
    bad[1].write_bytes(b"nothing")
    bad[2].write_bytes(records[0].read_bytes()[:-20])
    head = header("kuhn")
    bad[3].write_bytes(encode(replace(head, rules="0"), *entries(head)))
    seen: list[tuple[int, int]] = []
    judge = train([*bad, *records], told=lambda done, planned: seen.append((done, planned)))
    assert seen == [(done, 64) for done in range(1, 65)]
    assert judge.provenance["left_out"] == {
        "not_a_record": 1,
        "record_not_credited": 2,
        "record_unreadable": 1,
    }
    assert judge.provenance["records"] == 64
    whole = train(records)
    assert (judge.weights, judge.bias, judge.held_out) == (whole.weights, whole.bias, whole.held_out)


def test_where_no_record_gives_credit_the_causes_are_said(records: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.arena"
    cut.write_bytes(records[0].read_bytes()[:-20])
    with pytest.raises(BadCredit) as error:
        train([cut, tmp_path / "gone.arena"])
    assert str(error.value).startswith("judge: none of 2 records gives credit ({")
    assert "'record_not_credited': 1" in str(error.value) and "'record_unreadable': 1" in str(error.value)
    with pytest.raises(BadCredit, match=r"^judge: none of 0 records gives credit \(\{\}\)$"):
        train([])


def test_too_little_to_learn_from_is_refused_with_how_much_there_is(records: list[Path]) -> None:
    with pytest.raises(
        BadCredit, match=r"^judge: \d+ decisions of \d matches \(\d+ helped\) are too few [^\n]*$"
    ):
        train(records[:4])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"reference": "nobody"}, "reference: player: got 'nobody'"),
        ({"reference": "planner"}, "reference: "),
        ({"depth": 1}, "credit setting: got 'depth'"),
        ({"step_replicates": 0}, "credit step_replicates: got 0"),
    ],
)
def test_what_cannot_be_asked_for_is_said_and_not_counted_as_bad_records(
    settings: dict[str, Any], said: str, records: list[Path]
) -> None:
    with pytest.raises(BadCredit) as error:
        train(records[:2], **settings)
    assert str(error.value).startswith(said)


def test_records_of_several_games_are_refused_at_the_first_of_another(
    records: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "w.arena"
    other.write_bytes(make("werewolf", seats=7))
    seen: list[int] = []
    with pytest.raises(BadCredit) as error:
        train([*records[:2], other, *records[2:]], told=lambda done, planned: seen.append(done))
    assert str(error.value) == "judge: got records of kuhn and of werewolf; a judge knows one game"
    assert seen == [1, 2]


def test_a_player_that_cannot_be_rebuilt_is_left_out_unless_somebody_stands_in(
    records: list[Path], tmp_path: Path
) -> None:
    head = header("kuhn", seed=5)
    person = replace(head, seats=(SeatInfo("ann", "human"), head.seats[1]))
    path = tmp_path / "ann.arena"
    path.write_bytes(encode(person, *entries(head)))
    assert train([*records, path]).provenance["left_out"] == {"not_rebuilt": 1}
    judge = train([*records, path], stand_in="random")
    assert (judge.provenance["left_out"], judge.provenance["stand_in"]) == ({}, "random")
