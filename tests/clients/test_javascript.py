"""The JavaScript example plays whole matches over the JSON encoding, on Node alone."""

import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clients.protocol.messages import ERROR_CODES
from replays.reader import read_record
from replays.verify import verify_file
from tests.clients.background import background_server, in_background
from tests.clients.fake_server import Cutter

AGENT = Path(__file__).parents[2] / "examples" / "javascript" / "agent.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def node(*args: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NODE), str(AGENT), *args],
        capture_output=True,
        text=True,
        check=False,
        env=extra or None,
    )


@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
def test_a_whole_match(game: str, tmp_path: Path) -> None:
    with background_server(tmp_path, fill_after_s=0.05) as server:
        done = node(server.addresses.websocket, game, "from node")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    [path] = tmp_path.rglob("*.arena")
    assert verify_file(path).ok
    record = read_record(path)
    seats = [index for index, seat in enumerate(record.header.seats) if seat.name == "from node"]
    assert len(seats) == 1 and record.footer is not None
    ended, role = record.footer.ended[seats[0]], record.footer.outcome.roles[seats[0]]
    assert done.stdout == f"{record.header.match}: {ended} as {role}\n"
    counts = record.footer.counts
    assert not counts.get("illegal") and not counts.get("timeout") and not counts.get("late")


def test_a_seat_is_taken_up_again_after_every_loss(tmp_path: Path) -> None:
    cuts = [6, 3.5, 3]  # so early that every match gets there, whoever dies in its first night
    with (
        background_server(tmp_path, fill_after_s=0.05) as server,
        in_background(lambda: Cutter(urlsplit(server.addresses.websocket).port or 0, cuts).run()) as cutter,
    ):
        done = node(f"ws://127.0.0.1:{cutter.port}", "werewolf", "from node")
    assert done.returncode == 0, done.stderr
    assert cutter.connections == len(cuts) + 1
    [path] = tmp_path.rglob("*.arena")
    record = read_record(path)
    assert verify_file(path).ok and record.footer is not None
    assert not {"late", "timeout", "disconnect", "forfeit"} & {
        k for k, v in record.footer.counts.items() if v
    }


def test_a_token_is_shown_and_a_wrong_one_refused(tmp_path: Path) -> None:
    from tests.arena.connected import token

    right = token(tmp_path, "js", "play")
    with background_server(tmp_path, fill_after_s=0.05, anonymous=()) as server:
        where = server.addresses.websocket
        assert node(where, "kuhn", ARENA_TOKEN=right).returncode == 0
        for wrong in ("", "wrong"):
            done = node(where, "kuhn", ARENA_TOKEN=wrong)
            assert done.returncode == 1 and "(unauthorised)" in done.stderr
    assert "unauthorised" in ERROR_CODES


def test_what_is_missing_is_said() -> None:
    assert node("ws://127.0.0.1:1").returncode == 2
    done = node("ws://127.0.0.1:1", "kuhn")
    assert done.returncode == 1 and "ECONNREFUSED" in done.stderr
