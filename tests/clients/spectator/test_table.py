"""The table of seats: clocks that run down, and stand for nothing but the newest moment."""

from clients.spectator.drawing import plain
from clients.spectator.panels import panel_of
from clients.spectator.panels.base import SeatLook
from clients.spectator.widgets.table import SeatTable


def table() -> tuple[SeatTable, list[float]]:
    made, now = SeatTable(), [100.0]
    made.panel, made.names, made.looks = panel_of("kuhn"), ["Ada", "Bors"], [SeatLook(), SeatLook()]
    made.seconds = lambda: now[0]
    return made, now


def test_clocks_run_down_to_nothing_and_stop_there() -> None:
    seats, now = table()
    seats.wind({0: 62.0})
    assert "1:02" in plain(seats.draw(60))
    now[0] += 3
    assert "0:59" in plain(seats.draw(60))
    now[0] += 1000
    assert "0:00" in plain(seats.draw(60))
    seats.wind({1: 5.0})
    first, second = plain(seats.draw(60)).splitlines()
    assert ":" not in first and "0:05" in second


def test_who_looks_back_sees_no_clock() -> None:
    seats, _ = table()
    seats.wind({0: 62.0})
    for brief in (False, True):
        seats.brief = brief
        seats.newest = False
        assert ":" not in plain(seats.draw(60))
        seats.newest = True
        assert "1:02" in plain(seats.draw(60))
