"""What the tests of the spectator share: a pilot that waits for the application and never for the clock."""

import asyncio
import itertools

import pytest
from textual._context import active_app
from textual.screen import Screen
from textual.widgets import Input, TextArea

ROUNDS = 100
"""Times that a screen may have to be drawn until it stays as it is."""


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every press and pause of a pilot last until all is done that it led to.

    Textual itself waits until the processor seems idle, which on a busy machine it does at any moment. What comes
    from outside the loop (a thread, a socket, a timer) neither waits for: `showing.until` does. Nor does
    a cursor blink, which would be on a picture or not.
    """
    for where in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{where}.wait_for_idle", _settle)
    for widget in (Input, TextArea):
        monkeypatch.setattr(widget, "cursor_blink", False)


async def _settle(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
    """Return when no task can go on and the screen is drawn as it is."""
    app = active_app.get()
    for _ in range(ROUNDS):
        await _nothing_to_do()
        if not app.screen_stack or app._exit:
            return
        if app._resize_timer is not None:
            app._check_resize()
            continue
        screens = [
            screen for screen in (*app._background_screens, app.screen) if _undrawn(screen, app.screen)
        ]
        if not screens or app._batch_count:
            return
        for screen in screens:
            screen._on_timer_update()
    raise AssertionError("the screen is drawn again and again")


def _undrawn(screen: "Screen[object]", top: "Screen[object]") -> bool:
    """Whether a screen has yet to be laid out or drawn, or something is to be done once it is.

    What shines through a dialog is drawn again for as long as the dialog is there.
    """
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._recompose_required
        or screen._callbacks
        or (screen is top and (screen._repaint_required or screen._dirty_widgets))
    )


async def _nothing_to_do() -> None:
    """Return when nothing in the loop can go on, what a socket has brought included."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    quiet = 0
    for turn in itertools.count():
        await asyncio.sleep(0)
        quiet = 0 if ready else quiet + 1
        if quiet == 2:
            return
        assert turn < 1_000_000, "the loop never rests"
