import json
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

import arena.runner
import arena.tournament
from agents.base import Agent, Seat
from agents.errors import BadModel, UnknownAdapter
from agents.players import make_agent
from agents.policy.settings import PolicySettings
from arena.errors import StoreError, TournamentError
from arena.store import Store
from arena.tournament import MODELS, Result, points, run_tournament
from arena.tournament_file import Overrides, read_tournament
from replays.errors import RecordWriteFailed
from replays.reader import read_record
from replays.verify import verify_file

TWO = ["a=scripted", "b=random"]


def play(home: str | Path = "h", *, concurrency: int = 1, resume: bool = False, **flags: Any) -> Result:
    asked = read_tournament(
        None, overrides=Overrides(**{"games": ["kuhn"], "players": TWO, "matches": 8} | flags)
    )
    return run_tournament(asked, home=Path(home), concurrency=concurrency, resume=resume)


def records(home: str | Path = "h", tournament: int = 1) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(home, "replays", f"t{tournament}").glob("*.arena")}


def comparable(result: Result) -> dict[str, Any]:
    data = result.as_dict()
    del data["wall_s"], data["records"]
    return data


def test_every_planned_match_is_played_stored_and_recorded() -> None:
    result = play(games=["avalon", "werewolf", "kuhn"], matches=6)
    assert (result.planned, result.played, result.failed) == (18, 18, 0)
    assert sorted(records()) == [
        f"{game}-{i:06d}.arena" for game in ("avalon", "kuhn", "werewolf") for i in range(6)
    ]
    assert all(verify_file(path).ok for path in Path("h/replays/t1").glob("*.arena"))
    rows = list(Database("h/arena.db")["matches"].rows)
    assert [row["number"] for row in rows] == list(range(18))
    for row in rows:
        record = read_record(Path("h", row["record"]))
        assert (record.header.match, record.header.game, str(record.header.seed)) == (
            row["match"],
            row["game"],
            row["seed"],
        )
        assert (Path("h") / row["record"]).stat().st_size == row["record_bytes"]
        seats = Database("h/arena.db").query(
            "select player from seats where match = ? order by seat", [row["id"]]
        )
        assert [seat["player"] for seat in seats] == [seat.name for seat in record.header.seats]


def test_the_same_command_plays_the_same_matches_on_any_number_of_processes() -> None:
    flags: dict[str, Any] = {"games": ["avalon", "kuhn"], "matches": 10}
    one = play("one", **flags)
    two = play("two", concurrency=2, **flags)
    again = play("one", **flags)
    assert records("one") == records("two") == records("one", 2)
    assert comparable(one) == comparable(two)
    assert again.tournament == "t2" and comparable(one)["standings"] == comparable(again)["standings"]
    other = play("other", seed=1, **flags)
    assert records("other") != records("one") and other.played == one.played


@pytest.mark.slow
def test_no_hash_seed_changes_a_record(process: Any, environment: dict[str, str]) -> None:
    args = ["tournament", *("--player", "a=scripted", "--player", "b=random"), "--matches", "4"]
    for seed in ("1", "2"):
        found = process(*args, "--home", seed, env={**environment, "PYTHONHASHSEED": seed})
        assert found.returncode == 0, found.stderr
    assert records("1") == records("2")


@pytest.mark.parametrize("kind", ["round-robin", "swiss", "gauntlet"])
@pytest.mark.parametrize("seating", ["auto", "mixed"])
def test_every_format_and_seating_counts_each_seat_once(kind: str, seating: str) -> None:
    players = ["a=scripted", "b=random", "c=random", "d=random", "e=random"]
    result = play(games=["werewolf"], players=players, seats=7, matches=20, format=kind, seating=seating)
    rows = result.board.standings
    assert sorted(row.player for row in rows) == ["a", "b", "c", "d", "e"]
    assert sum(row.tally.played for row in rows) == 20 * 7
    assert all(row.tally.played == sum(tally.played for tally in row.by_role.values()) for row in rows)


def test_sides_are_held_whole_and_mirrored_on_one_deal() -> None:
    play(games=["avalon"], matches=8)
    by_deal: dict[str, list[dict[str, str]]] = {}
    for match in Database("h/arena.db")["matches"].rows:
        seats = Database("h/arena.db").query("select * from seats where match = ?", [match["id"]])
        sides = {seat["team"]: seat["player"] for seat in seats}
        by_deal.setdefault(match["deal"], []).append({**sides, "seed": match["seed"]})
    for first, second in by_deal.values():
        assert first["seed"] == second["seed"]
        assert (first["good"], first["evil"]) == (second["evil"], second["good"])


def test_one_player_alone_and_no_match_at_all() -> None:
    assert play("one", players=["me=scripted"]).board.standings[0].tally.played == 16
    result = play("none", matches=0)
    assert (result.planned, result.played, result.board.standings) == (0, 0, ())


def test_a_match_that_fails_is_reported_and_resume_plays_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play("whole", matches=12)
    ruined = {read_record(Path("whole/replays/t1/kuhn-000004.arena")).header.seed}

    def sometimes(spec: str, seat: Seat) -> Agent:
        if seats_seed[0] in ruined:
            raise RuntimeError("out of memory")
        return make_agent(spec, seat)

    seats_seed = [0]
    table = arena.runner._Table.__init__

    def noted(self: Any, job: Any, *rest: Any) -> None:
        seats_seed[0] = job.plan.seed
        table(self, job, *rest)

    monkeypatch.setattr(arena.runner, "make_agent", sometimes)
    monkeypatch.setattr(arena.runner._Table, "__init__", noted)
    result = play(matches=12)
    assert (result.played, result.failed) == (10, 2)
    assert [failure["number"] for failure in result.failures] == [4, 5]
    assert result.failures[0]["error"] == "RuntimeError: out of memory"
    ruined.clear()
    mended = play(matches=12, resume=True)
    assert comparable(mended) == comparable(whole)
    assert records() == records("whole")


def test_resume_takes_in_records_without_rows_and_replays_the_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play("whole", games=["werewolf"], matches=12)
    play(games=["werewolf"], matches=12)
    database = Database("h/arena.db")
    for number in (3, 4, 11):
        database.execute(
            "delete from seats where match = (select id from matches where number = ?)", [number]
        )
        database.execute("delete from matches where number = ?", [number])
    database.execute("update tournaments set status = 'running'")
    database.conn.commit()
    database.close()
    folder = Path("h/replays/t1")
    torn = folder / "werewolf-000004.arena"
    torn.write_bytes(torn.read_bytes()[:-30])
    (folder / "werewolf-000011.arena").unlink()
    (folder / "werewolf-000011.arena.99.part").write_bytes(b"half")
    played = []
    real = arena.runner.play

    async def counted(referee: Any, *args: Any, **kwargs: Any) -> Any:
        played.append(referee.state.chance.seed)
        return await real(referee, *args, **kwargs)

    monkeypatch.setattr(arena.runner, "play", counted)
    assert comparable(play(games=["werewolf"], matches=12, resume=True)) == comparable(whole)
    assert len(played) == 2
    assert records() == records("whole")
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("kind", ["swiss", "round-robin"])
def test_interrupted_anywhere_it_goes_on_to_the_same_end(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    flags: dict[str, Any] = {
        "games": ["kuhn", "werewolf"],
        "players": ["a=scripted", "b=random", "c=random", "d=random", "e=random"],
        "matches": 24,
        "format": kind,
    }
    whole = play("whole", **flags)
    real = arena.pool.run_match  # type: ignore[attr-defined]
    left = [0]

    def stopping(job: Any, *, loop: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(job, loop=loop)

    monkeypatch.setattr("arena.pool.run_match", stopping)
    resume = False
    for step in (1, 3, 10, 7, 1, 15):
        left[0] = step
        with pytest.raises(KeyboardInterrupt):
            play(resume=resume, **flags)
        resume = True
    with Store(Path("h")) as store:
        assert [row.status for row in store.tournaments()] == ["interrupted"]
        assert len(store.played(1)) == 37
    left[0] = 10**6
    assert comparable(play(resume=True, **flags)) == comparable(whole)
    assert records() == records("whole")


def test_resume_without_anything_to_resume() -> None:
    with pytest.raises(TournamentError, match="no unfinished tournament of this configuration in h; leave"):
        play(resume=True)
    assert not Path("h").exists(), "nothing is made where there is nothing to resume"
    play()
    play()
    with pytest.raises(TournamentError, match="t2 in h is this configuration, and finished"):
        play(resume=True)
    with Store(Path("h")) as store:
        store.set_status(2, status="interrupted")
    with pytest.raises(TournamentError, match="unfinished with another configuration: t2"):
        play(resume=True, matches=9)


def test_no_tournament_writes_over_the_records_of_a_store_that_was_lost() -> None:
    play()
    kept = records()
    Path("h/replays/t9").mkdir()
    Path("h/replays/tx").mkdir()
    Path("h/replays/tx/a.arena").write_text("")
    for path in Path("h").glob("arena.db*"):
        path.unlink()
    assert play(seed=2).tournament == "t2", "folders without records are free"
    assert records() == kept and len(records(tournament=2)) == 8
    assert play(seed=2).tournament == "t3"


def test_two_processes_do_not_play_one_tournament() -> None:
    play()
    with Store(Path("h")) as store:
        store.set_status(1, status="interrupted")
    with arena.tournament._locked(Path("h/replays/t1"), 1):
        with pytest.raises(TournamentError, match="t1 is being played by another process"):
            play(resume=True)
        with Store(Path("h")) as store:
            assert [row.status for row in store.tournaments()] == ["interrupted"]
    assert play(resume=True).played == 8


def test_a_sequential_test_stops_early_and_keeps_what_it_saw() -> None:
    for concurrency, home in ((1, "one"), (2, "two")):
        result = play(home, concurrency=concurrency, games=["werewolf"], matches=300, sprt="0,60,0.05,0.05")
        assert result.sprt is not None
        found = result.sprt["werewolf"]
        assert found["status"] == "accept_h1" and found["player"] == "a"
        assert result.played == 2 * found["pairs"] < 300
        assert sorted(records(home)) == [f"werewolf-{i:06d}.arena" for i in range(result.played)]
    assert records("one") == records("two")


def test_a_sequential_test_that_decides_nothing_plays_all() -> None:
    result = play(players=["a=random", "b=random"], matches=7, sprt="-200,200,0.001,0.001")
    assert result.sprt is not None and result.sprt["kuhn"]["status"] == "continue"
    assert result.played == 7


def test_unevenness_is_reported() -> None:
    assert play("even", matches=8).imbalance == {}
    assert play("odd", matches=7).imbalance["kuhn"]


def test_a_full_disk_stops_with_one_line_and_resume_goes_on(process: Any) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))

    args = ["tournament", *("--game", "werewolf", "--player", "a=random", "--player", "b=random")]
    args += ["--matches", "300", "--home", "h", "--json", "--concurrency", "1"]
    full = process(*args, preexec_fn=limit)
    assert full.returncode == 1 and full.stdout == ""
    *progress, line = full.stderr.splitlines()
    assert all(said.endswith(" s left") for said in progress)
    assert line.startswith("Error: h/") and ("write" in line or "store" in line)
    done = process(*args, "--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["matches"] == {"planned": 300, "played": 300, "failed": 0}


def test_records_that_cannot_be_written_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_bytes
    left = [5]

    def full(self: Path, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RecordWriteFailed, match="No space left on device"):
        play()
    left[0] = 10**6
    assert play(resume=True).played == 8


def test_a_place_for_records_that_cannot_be_made() -> None:
    Path("h").mkdir()
    Path("h/replays").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write records here"):
        play()


def test_points_are_the_mean_over_a_players_seats() -> None:
    assert points([("a", 1.0), ("b", -1.0)]) == {"a": 1.0, "b": 0.0}
    assert points([("a", 2.0), ("b", -2.0), ("a", 0.0), ("a", -1.0)]) == {"a": 0.5, "b": 0.0}


def test_progress_counts_to_the_end() -> None:
    said: list[tuple[int, int]] = []
    asked = read_tournament(None, overrides=Overrides(games=["kuhn"], players=TWO, matches=5))
    run_tournament(asked, home=Path("h"), progress=lambda done, planned: said.append((done, planned)))
    assert said == [(i, 5) for i in range(1, 6)]


def test_no_seat_is_favoured_by_the_plan() -> None:
    play(players=["a=random", "b=random", "c=random"], matches=12)
    held = Counter(
        (row["player"], row["seat"]) for row in Database("h/arena.db").query("select player, seat from seats")
    )
    assert set(held.values()) == {4}


@pytest.mark.parametrize(
    ("spec", "model", "error", "said"),
    [
        ("policy", "nomodel", BadModel, "model: got 'nomodel'"),
        ("policy:nobody", "tiny", UnknownAdapter, "got 'nobody'"),
    ],
)
def test_a_model_that_there_is_not_is_refused_before_anything_is_written(
    spec: str, model: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    asked = read_tournament(
        None, overrides=Overrides(games=["kuhn"], players=[f"a={spec}", "b=random"], matches=2)
    )
    home = tmp_path / "h"
    with pytest.raises(error, match=said):
        run_tournament(asked, home=home, policy=PolicySettings(model=model))
    assert not home.exists()


def test_a_tournament_goes_on_with_the_model_that_it_began_with(tmp_path: Path) -> None:
    asked = read_tournament(
        None, overrides=Overrides(games=["kuhn"], players=["a=policy", "b=random"], matches=2)
    )
    with Store(tmp_path) as store:
        store.add_tournament({**asked.to_data(), MODELS: {"policy": "other@123"}}, config_hash=asked.hash())
    with pytest.raises(TournamentError) as error:
        run_tournament(asked, home=tmp_path, resume=True)
    assert str(error.value).startswith("--resume: in t1 policy was other@123, now it is tiny@")
    assert "\n" not in str(error.value)
    with Store(tmp_path) as store:
        assert store.tournaments()[-1].config[MODELS] == {"policy": "other@123"} and not store.played(1)
