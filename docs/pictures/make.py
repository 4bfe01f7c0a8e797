"""Draws the pictures of the documentation anew: `python docs/pictures/make.py`.

The match is played by scripted bots from a fixed seed and shown at a fixed place, so the same version of the
project draws the same picture.
"""

import asyncio
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from clients.spectator.app import SpectatorApp
from clients.spectator.screens.match import MatchScreen
from clients.spectator.source import RecordSource

FOLDER = Path(__file__).parent
SIZE = (118, 36)
SEED = 18
NAMES = ("Ada", "Bors", "Cai", "Dinadan", "Elaine")
SHARE = 0.75
"""The picture is taken after the last team that was sent before this share of the match."""


def play(path: Path) -> None:
    """Play one match of Avalon among scripted bots and record it at `path`."""
    job = MatchJob(
        match=f"avalon-{SEED}",
        plan=MatchPlan(0, "avalon", SEED, 0, 0, NAMES),
        seats=len(NAMES),
        players=dict.fromkeys(NAMES, "scripted"),
        options={},
        record=path,
    )
    with asyncio.Runner() as loop:
        report = run_match(job, loop=loop)
    if report.error is not None:
        raise SystemExit(f"the match could not be played: {report.error}")


async def draw(path: Path) -> str:
    """Return the picture of the match in its middle, everything shown."""
    app = SpectatorApp({"match": lambda: MatchScreen(RecordSource(path, perspective="all"))})
    async with app.run_test(size=SIZE) as pilot:
        while not (isinstance(app.screen, MatchScreen) and app.screen.timeline is not None):
            await pilot.pause(0.01)
        screen = app.screen
        steps = screen.timeline.steps
        sent = [
            at + 1
            for at, step in enumerate(steps[: int(SHARE * len(steps))])
            if step.event.kind == "votes" and step.event.data["approved"]
        ]
        screen.go(sent[-1])
        await pilot.pause()
        return app.export_screenshot(title="arena watch")


def main() -> None:
    """Write `spectator.svg` beside this file."""
    with TemporaryDirectory() as folder:
        record = Path(folder) / "match.arena"
        play(record)
        picture = asyncio.run(draw(record))
    # The drawing program names its styles by chance; a fixed name makes the same picture the same bytes.
    name = re.search(r"terminal-\d+", picture)
    if name is not None:
        picture = picture.replace(name[0], "terminal-0")
    # Nor does it fetch a font from elsewhere: the reader's own monospace font does.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    (FOLDER / "spectator.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
