"""Every benchmark runs from its `main` and prints its table; how fast anything is, is not looked at."""

import importlib
import importlib.util
from pathlib import Path

import pytest

from benchmarks import flat_cost, train_ends, train_runs
from benchmarks._measure import PEERS_HINT, Sample, Side, Spread, Work, interleave, ratios, table, verdict
from benchmarks.flat_cost import Line

TINY = {
    "host_flat": ["--matches", "4", "--blocks", "2"],
    "session_fuzz": ["--frames", "300"],
    "kuhn_openspiel": ["--games", "3", "--rounds", "2"],
    "memory": ["--episodes", "30", "--tasks", "10", "--calls", "1"],
    "tasks_batch": ["--games", "2", "--rounds", "2", "--worlds", "8"],
    "tasks_minigrid": ["--games", "1", "--rounds", "2"],
    "werewolf_textarena": ["--games", "1", "--rounds", "2", "--words", "3"],
    "trainer_trl": [
        "--game",
        "kuhn",
        "--matches",
        "2",
        "--completions",
        "4",
        "--batch",
        "2",
        "--rounds",
        "1",
    ],
    "record_size": ["--games", "1", "--rounds", "1", "--matches", "2"],
    "flat_cost": ["--games", "1", "--rounds", "4"],
    "tournament_scaling": ["--games", "2", "--rounds", "1"],
    "host_load": ["--matches", "2", "--rounds", "1", "--think-s", "0.01", "--echo-s", "0.2"],
    "spectator_load": ["--spectators", "5", "--events", "10", "--rounds", "1"],
    "forge": ["--matches", "2", "--rounds", "1"],
    "train_kuhn": [
        *(
            "--seeds",
            "2",
            "--set",
            "budget.updates=1",
            "--set",
            "rollout.plays=2",
            "--set",
            "start.hidden=32",
        ),
        *("--set", "start.layers=1", "--set", "tensorboard=false"),
    ],
    "credit_power": ["--games", "relay", "--pool", "3", "--experiments", "4", "--matches", "9"],
    "credit_agreement": ["--games", "relay", "--matches", "2", "--replicates", "1"],
    "forge_relay": ["--matches", "2", "--legs", "2"],
    "lessons": ["--seeds", "3", "--attempts", "32"],
    "fault_sweep": ["--runs", "2", "--faults", "2", "--agents", "2", "--matches", "1"],
}
SAYS = {
    "host_flat": ["CPU ms a match", "matches and seats held"],
    "session_fuzz": ["300 frames, none raised", "| bad_message "],
    "kuhn_openspiel": ["| ours ", "games/s"],
    "memory": ["10 tasks and 30 attempts", "| 8 most similar tasks ", "first search after opening"],
    "tasks_batch": ["| ours, 13×13 ", "million steps/s", "single engine's: True"],
    "tasks_minigrid": ["| ours ", "steps/s", "levels/s"],
    "werewolf_textarena": ["| ours ", "actions/s"],
    "trainer_trl": ["| ours ", "tokens/s", "| prompts that share nothing "],
    "record_size": ["| scripted |", "| random ", "verify / play", "mean bytes"],
    "flat_cost": ["\nkuhn\n", "\nwerewolf\n", "resident MiB", "bytes a match"],
    "tournament_scaling": ["matches/s", "two processes are faster by", "| 2 "],
    "host_load": ["memory of an idle connection", "| arena ", "| bare echo of ", "failed 0; errors 0"],
    "spectator_load": ["| 4 of 4 ", "started over"],
    "train_kuhn": ["| seed ", "| 2 ", "of 2 runs fall by at least 80%"],
    "forge": ["matches/s", "ms of CPU a match", "| record "],
    "credit_power": ["| relay | equals | - | 9 | - | ", "| relay | saboteur | -"],
    "credit_agreement": ["| relay | shapley | ", "| relay | equal | - | - | 0 of 4 ", "s of CPU"],
    "forge_relay": ["flagged above ", "| silent ", "| careless "],
    "lessons": ["3 readers a row", "| useful +20% ", "| the alert "],
    "fault_sweep": ["| failed by name ", "Every record verifies, every failure is named"],
}
PEERS = {
    "kuhn_openspiel": "pyspiel",
    "tasks_minigrid": "minigrid",
    "werewolf_textarena": "textarena",
    "trainer_trl": "trl",
}


def test_flat_cost_goes_through_a_tournament_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    flat_cost.main(["--tournament", "--game", "kuhn", "--games", "2", "--rounds", "4", "--show", "4"])
    out = capsys.readouterr().out
    assert "8 matches of each game among random bots with records, one tournament" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("| ")][1:] == ["2", "4", "6", "8"]


@pytest.mark.parametrize("name", TINY)
def test_prints_its_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(f"benchmarks.{name}").main(TINY[name])
    out = capsys.readouterr().out
    assert "|---" in out
    for words in SAYS[name]:
        assert words in out
    if name in PEERS and importlib.util.find_spec(PEERS[name]) is None:
        assert f"there is no ratio; install it beside us with: {PEERS_HINT}" in out


def test_sides_take_turns_on_the_same_seeds() -> None:
    calls: list[tuple[str, int, int]] = []

    def side(name: str) -> Side:
        def play(games: int, seed: int) -> Work:
            calls.append((name, games, seed))
            return Work(games, 2 * games)

        return Side(name, play)

    samples = interleave([side("a"), side("b")], games=10, rounds=3, seed=5)
    assert calls[:2] == [("a", 1, 5), ("b", 1, 5)]
    assert calls[2:] == [
        ("a", 10, 6),
        ("b", 10, 6),
        ("b", 10, 16),
        ("a", 10, 16),
        ("a", 10, 26),
        ("b", 10, 26),
    ]
    assert [len(taken) for taken in samples.values()] == [3, 3]
    assert all(sample.games == 10 and sample.actions == 20 for taken in samples.values() for sample in taken)


def test_ratios_compare_round_by_round() -> None:
    ours = [Sample(10, 100, 1.0), Sample(10, 100, 2.0), Sample(10, 100, 4.0)]
    theirs = [Sample(10, 50, 2.0), Sample(10, 50, 4.0), Sample(10, 50, 4.0)]
    assert ratios(ours, theirs) == Spread(2.0, 1.0, 2.0)
    assert ratios(ours, theirs, per="actions_per_s") == Spread(4.0, 2.0, 4.0)
    assert Spread.of([3.0, 1.0, 2.0]).show(".1f", " s") == "2.0 s (1.0 to 3.0)"


def test_verdict_says_whether_the_target_is_met() -> None:
    assert verdict(2.0, target=1.7) == "target at least 1.7: met"
    assert verdict(1.6, target=1.7) == "target at least 1.7: NOT met"
    assert verdict(2.0, target=2.0, at_most=True) == "target at most 2: met"
    assert verdict(2.1, target=2.0, at_most=True) == "target at most 2: NOT met"


def test_table_is_aligned_markdown() -> None:
    assert table(["a", "bb"], [["ccc", "d"]]) == "| a   | bb |\n|-----|----|\n| ccc | d  |"


def test_line_tells_flat_from_growing_and_from_restless() -> None:
    x = [float(i) for i in range(20)]
    flat = Line.fit(x, [1.0 + 0.001 * (-1) ** i for i in range(20)])
    growing = Line.fit(x, [1.0 + 0.1 * i for i in range(20)])
    restless = Line.fit(x, [1.0 + 10.0 * (-1) ** i for i in range(20)])
    assert flat.low < 0 < flat.high
    assert Line.fit(x, [3.0] * 20) == Line(0.0, 0.0, 0.0)
    assert growing.slope == pytest.approx(0.1)
    assert flat.verdict(20, limit=0.05, form=".0%").startswith("flat")
    assert growing.verdict(20, limit=0.05, form=".0%").startswith("GROWS")
    assert restless.verdict(20, limit=0.05, form=".0%").startswith("undecided")


def test_runs_of_training_are_made_read_and_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.toml"
    file.write_text(
        "games = [{game = 'kuhn'}]\ntensorboard = false\nbudget.updates = 1\n"
        "rollout = {deals = 2, plays = 2}\nlearner = {weights = 'all', threads = 1}\n"
        "evaluation = {opponents = ['equilibrium', 'policy'], deals = 2}\n"
    )
    given = [str(file), "--seeds", "2", "--home", str(tmp_path), "--variant", "own: learner.lr=0.01"]
    train_runs.main(given)
    made = capsys.readouterr().out
    assert "own-2, update 1" in made and "| own " in made and "against equilibrium, all sides" in made
    train_runs.main(given)  # done, so read
    assert "own-2, update" not in (read := capsys.readouterr().out) and "| own " in read
    with pytest.raises(SystemExit, match="was made with the configuration"):
        train_runs.main([*given, "--set", "rollout.plays=3"])
    (tmp_path / "runs" / "own-1" / "run.json").write_text(
        (tmp_path / "runs" / "own-1" / "run.json").read_text().replace('"model": "tiny@', '"model": "other@')
    )
    with pytest.raises(SystemExit, match="was made with the model other@"):
        train_runs.main(given)
    capsys.readouterr()
    ends = [str(file), "--seeds", "2", "--home", str(tmp_path), "--variant", "own", "--deals", "3"]
    train_ends.main(ends)
    told = capsys.readouterr().out
    assert "own-1: kuhn equilibrium" in told and "| kuhn | policy      | all " in told
    train_ends.main([*ends, "--set", "evaluation.opponents=['policy']"])
    assert "equilibrium" not in (told := capsys.readouterr().out) and "own-1: kuhn policy" in told
