"""A folder that one process holds alone."""

import sys
from pathlib import Path

import pytest

from arena.errors import ServeError, StoreError
from arena.lock import held, hold

TAKEN = ServeError("another has it")


def unusable(error: OSError) -> StoreError:
    return StoreError(f"not there: {error.strerror}")


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is held there")
def test_a_folder_is_held_by_one_until_it_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "home"
    with hold(folder, name=".lock", mode=0o600, taken=TAKEN, unusable=unusable):
        assert (folder / ".lock").stat().st_mode & 0o777 == 0o600
        second = hold(folder, name=".lock", mode=0o600, taken=TAKEN, unusable=unusable)
        with pytest.raises(ServeError, match="another has it"), second:
            pass
    with hold(folder, name=".lock", mode=0o600, taken=TAKEN, unusable=unusable):
        pass


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    there = hold(tmp_path / "file", name=".lock", mode=0o600, taken=TAKEN, unusable=unusable)
    with pytest.raises(StoreError, match="not there"), there:
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is held there")
def test_whoever_looks_learns_whether_a_folder_is_held_and_turns_nobody_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    assert held(tmp_path, name=".lock") is False
    with hold(tmp_path, name=".lock", mode=0o600, taken=TAKEN, unusable=unusable):
        assert held(tmp_path, name=".lock") is True
    assert held(tmp_path, name=".lock") is False
    with (tmp_path / ".lock").open() as looking:  # somebody looks in this very moment, and then no more
        fcntl.flock(looking, fcntl.LOCK_SH)
        monkeypatch.setattr("arena.lock.time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with hold(tmp_path, name=".lock", mode=0o600, taken=TAKEN, unusable=unusable):
            assert held(tmp_path, name=".lock") is True
