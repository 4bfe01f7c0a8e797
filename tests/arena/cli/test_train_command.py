import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

pytest.importorskip("torch")

from arena.runs import PAGE
from arena.train import RUNS

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "train_kuhn.toml"
TINY = (
    *("--set", "budget.updates=2", "--set", "start.hidden=32", "--set", "start.layers=1"),
    *("--set", "rollout.plays=2", "--set", "learner.epochs=1", "--set", "evaluation.every=1"),
    *("--set", "evaluation.deals=2", "--set", "learner.threads=1", "--set", "tensorboard=false"),
)

Arena = Callable[..., Result]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_POLICY__THREADS", "1")
    monkeypatch.setenv("ARENA_POLICY__DEVICE", "cpu")


@pytest.mark.slow
def test_the_example_trains_and_its_run_can_be_looked_at(arena: Arena, tmp_path: Path) -> None:
    home = ("--home", tmp_path)
    done = arena("train", EXAMPLE, *TINY, *home, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["run"], told["stopped_by"], told["updates"], told["matches"]) == ("kuhn", "updates", 2, 24)
    assert told["adapter"].startswith("kuhn@") and told["latest"]["nash_conv"]["kuhn"] > 0
    assert told["latest"]["against"][0]["opponent"] == "equilibrium"
    assert "evaluation after 2: NashConv at kuhn" in done.stderr

    again = arena("train", EXAMPLE, *TINY, *home)
    assert again.exit_code == 2 and "has a run already; --resume goes on with it" in again.stderr
    more = [arg.replace("updates=2", "updates=3") for arg in TINY]
    resumed = arena("train", EXAMPLE, *more, *home, "--resume", "--adopt")
    assert resumed.exit_code == 0, resumed.output
    assert "kuhn: 3 updates, 36 matches" in resumed.stdout and "stopped by updates" in resumed.stdout

    (row,) = json.loads(arena("runs", "list", *home, "--json").stdout)
    assert (row["run"], row["kind"], row["updates"], row["running"]) == ("kuhn", "train", 3, False)
    assert "NashConv at kuhn" in row["result"]
    assert "kuhn" in arena("runs", "list", *home).stdout
    shown = arena("runs", "show", "kuhn", *home)
    assert "evaluation after 3: kuhn against equilibrium" in shown.stdout
    assert "Stopped by updates." in shown.stdout and "learner/entropy" in shown.stdout
    details = json.loads(arena("runs", "show", "kuhn", *home, "--json").stdout)
    assert [line["update"] for line in details["evaluations"]] == [0, 1, 2, 3]
    assert details["config"]["games"][0]["game"] == "kuhn" and details["latest"]["update"] == 3
    plotted = arena("runs", "plot", "kuhn", *home)
    page = tmp_path / RUNS / "kuhn" / PAGE
    assert plotted.stdout.strip() == str(page)
    assert "Distance from perfect play" in page.read_text() and "<script" not in page.read_text()
    plots = {one["title"]: one for one in json.loads(arena("runs", "plot", "kuhn", *home, "--json").stdout)}
    assert plots["Distance from perfect play"]["updates"] == [0, 1, 2, 3]
    assert set(plots["Return by role"]["values"]) == {"kuhn first", "kuhn second"}

    model = tmp_path / RUNS / "kuhn" / "model"
    played = arena("play", "kuhn", "--all", "policy:kuhn", "--model", model, *home, "--json")
    assert played.exit_code == 0, played.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sets", "measured"),
    [
        ("werewolf", ("rollout.deals=1", "rollout.plays=2", "evaluation.deals=1"), "against"),
        ("avalon", ("rollout.deals=1", "rollout.plays=2", "evaluation.deals=1"), "against"),
        (
            "tasks",
            ("tasks.tasks=1", "tasks.attempts=2", "tasks.validation=1", "tasks.questioning.pool=4"),
            "tasks",
        ),
    ],
)
def test_the_examples_train_any_model(
    arena: Arena, tmp_path: Path, name: str, sets: tuple[str, ...], measured: str
) -> None:
    given = [part for one in (*sets, "budget.updates=1", "tensorboard=false") for part in ("--set", one)]
    done = arena("train", ROOT / "examples" / f"train_{name}.toml", *given, "--home", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["run"], told["stopped_by"], told["updates"]) == (name, "updates", 1)
    assert told["latest"][measured]


@pytest.mark.parametrize(
    ("text", "sets", "message"),
    [
        ("", (), "there is nothing to train on"),
        ("[games]\ngame = 'kuhn'", (), "games: got "),
        ("games = [{game = 'kuhn'}]\n[learner]\nlr = -1", (), "learner.lr: got -1"),
        ("games = [{game = 'kuhn'}]\nbudgets = 3", (), "unknown key 'budgets' (did you mean 'budget'?)"),
        ("games = [{game = 'kuhn'}]", ("learner.rat=1",), "unknown key 'learner.rat'"),
        ("games = [{game = 'kuhn'}]", ("budget.updates=many",), "budget.updates: got 'many'"),
        ("games = [{game = 'kuhn'}]", ("name",), "--set: got 'name', the form is KEY=VALUE"),
        ("games = [{game = 'kuhn'}]", ("games.1.seats=2",), "entries of that list are 0 to 0"),
        ("games = [{game = 'kuhn'}]", ("seed.more=2",), "holds no others"),
        ("games = [{game = 'chess'}]", (), "chess"),
        ("games = [{game = 'kuhn', seats = 5}]", (), "seats"),
        ("games = [{game = 'kuhn'}]\n[league]\nbots = 1\nopponents = ['nobody']", (), "nobody"),
        (
            "games = [{game = 'kuhn'}]\n[credit]\nmethod = 'shapley'\nreference = 'planner'",
            (),
            "credit.reference: 'planner' does not play kuhn",
        ),
        (
            "games = [{game = 'kuhn'}]\n[credit]\nmethod = 'shapley'\nstand_in = 'nobody'",
            (),
            "credit.stand_in: player: got 'nobody'",
        ),
        (
            "games = [{game = 'kuhn'}]\n[credit]\nstand_in = 'human'",
            (),
            "credit.stand_in: got 'human', nobody is there to play it",
        ),
        (
            "games = [{game = 'kuhn'}]\n[credit]\nmethod = 'shapley'\nreference = 'policy:none'",
            (),
            "none",
        ),
        (
            "games = [{game = 'kuhn'}]\n[evaluation]\nopponents = ['planner']",
            (),
            "plays none of the run's games",
        ),
        (
            "games = [{game = 'avalon'}]\n[league]\nbots = 1\nopponents = ['random']\nmates = 'equilibrium'",
            (),
            "league.mates: 'equilibrium' does not play avalon",
        ),
        (
            "games = [{game = 'kuhn'}]\n[evaluation]\nopponents = ['random']\nmates = 'random'",
            (),
            "evaluation.mates: got 'random', but no side of the run's games has a second seat",
        ),
        (
            "games = [{game = 'avalon'}]\n[credit]\nmethod = 'shapley'\nshare = 0.5",
            ("league.bots=1", "league.opponents=['random']", "league.mates=random"),
            "credit.share: got 0.5, but beside league.mates",
        ),
        (
            "games = [{game = 'avalon'}]\n[evaluation]\nmates = 'human'",
            (),
            "evaluation.mates: got 'human', nobody is there to play it",
        ),
        (
            "games = [{game = 'avalon'}]\n[evaluation]\nopponents = ['ws']",
            (),
            "evaluation.opponents.0: got 'ws', nobody is there to play it",
        ),
        ("games = [{game = 'kuhn'}]\n[learner]\nreference = 'none'\n[learner.loss]\nkl = 1", (), "reference"),
        ("[tasks]\ntasks = 1\nskills = ['juggle']", (), "juggle"),
        ("games = [", (), "no valid TOML"),
    ],
)
def test_a_file_that_means_nothing_is_told_in_one_line(
    text: str, sets: tuple[str, ...], message: str, arena: Arena, tmp_path: Path
) -> None:
    file = tmp_path / "t.toml"
    file.write_text(("seed = 1\n" if not text.startswith("games = [\n") else "") + text)
    given = [arg for one in sets for arg in ("--set", one)]
    done = arena("train", file, *given, "--home", tmp_path / "home")
    assert done.exit_code in (1, 2), done.output
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and message in lines[0], lines
    assert done.stdout == "" and not list((tmp_path / "home").rglob("run.json"))


def test_a_run_that_is_not_there_is_told_in_one_line(arena: Arena, tmp_path: Path) -> None:
    done = arena("runs", "show", "x", "--home", tmp_path)
    assert (
        done.exit_code == 2 and done.stderr.strip() == f"Error: run: got 'x', in {tmp_path / RUNS} are: none"
    )
    assert json.loads(arena("runs", "list", "--home", tmp_path, "--json").stdout) == []


def test_runs_of_arena_evolve_are_listed_too(arena: Arena, tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text('name = "e"\n[loop]\ntasks = 2\n[probe]\neach = 0\n')
    assert arena("evolve", file, "--tasks", 4, "--home", tmp_path).exit_code == 0
    (row,) = json.loads(arena("runs", "list", "--home", tmp_path, "--json").stdout)
    assert (row["run"], row["kind"]) == ("e", "evolve") and row["updates"] >= 1
    assert "generations" in arena("runs", "show", "e", "--home", tmp_path).stdout
    assert "writes its plots by itself" in arena("runs", "plot", "e", "--home", tmp_path).stderr


@pytest.mark.slow
def test_a_run_that_an_alarm_stops_leaves_with_one(arena: Arena, tmp_path: Path) -> None:
    stop = ("--set", "alarms.kl=1e-12", "--set", "alarms.kl_spike=stop", "--set", "learner.epochs=2")
    done = arena("train", EXAMPLE, *TINY, *stop, "--home", tmp_path, "--json")
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert (told["stopped_by"], told["updates"]) == ("alarm", 1)
    assert told["alarms"][0]["alarm"] == "kl_spike"
    assert done.stderr.strip().splitlines()[-1].startswith("Error: stopped by an alarm: an update moved")
    shown = arena("runs", "show", "kuhn", "--home", tmp_path).stdout
    assert "alarm in update 1" in shown and "Stopped by alarm." in shown


def test_the_seeds_of_the_example_are_all_six_deals() -> None:
    from arena.train_file import load
    from games.registry import load_game

    config = load(EXAMPLE)
    game = load_game("kuhn")
    deals = [game.new(seed=seed).cards for seed in config.rollout.seeds]  # type: ignore[attr-defined]
    assert len(deals) == len(set(deals)) == config.rollout.deals == 6
