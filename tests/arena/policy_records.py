"""Records for the tests of what is shown of policies: real matches of the embedded model, and of bots."""

from pathlib import Path

from agents.policy.settings import PolicySettings
from arena.policy_pool import PolicyPool
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from replays.reader import read_record
from replays.record import Record
from replays.writer import write_whole
from tests.replays.recording import make

SETTINGS = PolicySettings(threads=1)


def play(
    folder: Path, game: str, seating: tuple[str, ...], *, home: Path, settings: PolicySettings = SETTINGS
) -> Path:
    """Play one match with the embedded model at the seats that name a policy, and return its record."""
    path = folder / f"{game}-{settings.mode}.arena"
    plan = MatchPlan(0, game, seed=11, deal=0, round=0, seating=seating)
    job = MatchJob("m1", plan, len(seating), {spec: spec for spec in seating}, deadline_s=600.0, record=path)
    with PolicyPool(settings, home=home) as pool:
        (report,) = pool.run([job], specs=sorted({spec for spec in seating if spec.startswith("policy")}))
    assert report.error is None, report.error
    return path


def play_bots(folder: Path, game: str = "werewolf", *, seats: int = 6, messy: bool = False) -> Path:
    """Write a match of random play, with everything that can go wrong at a seat where `messy`."""
    path = folder / f"bots-{game}{'-messy' if messy else ''}.arena"
    path.write_bytes(make(game, seats=seats, seed=3, messy=messy))
    return path


def rewrite(path: Path, record: Record) -> Path:
    """Write a record that a test has changed."""
    assert record.footer is not None
    write_whole(path, record.header, record.entries, record.footer)
    return path


def read(path: Path) -> Record:
    """Return a record that must be whole."""
    return read_record(path, strict=True)
