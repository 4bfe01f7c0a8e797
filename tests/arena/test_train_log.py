from pathlib import Path

import pytest

from arena.errors import TrainError
from arena.train_log import METRICS, MetricsLog, numbers, read_metrics


def test_lines_are_whole_and_can_be_cut_off(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, tensorboard=False)
    first = log.write("update", 1, {"a": 1.0, "b": {"c": float("nan")}, "d": None})
    assert first == {"kind": "update", "update": 1, "a": 1.0, "b": {"c": None}, "d": None}
    size = log.size
    log.write("update", 2, {})
    assert len(read_metrics(tmp_path)) == 2
    log.cut(size)
    assert read_metrics(tmp_path) == [first]
    log.cut(10**9)
    assert read_metrics(tmp_path) == [first]


def test_a_line_that_a_crash_cut_short_is_left_out_and_rubbish_is_told(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == []
    path = tmp_path / METRICS
    path.write_text('{"kind": "update", "update": 1}\n{"kind": "upd')
    assert len(read_metrics(tmp_path)) == 1
    path.write_text('rubbish\n{"kind": "update", "update": 1}\n')
    with pytest.raises(TrainError, match="line 1 is none of a run's"):
        read_metrics(tmp_path)


def test_numbers_are_found_at_every_depth() -> None:
    line = {
        "kind": "update",
        "update": 3,
        "a": 1,
        "b": {"update": 2.0, "c": {"d": 0.5}},
        "e": True,
        "f": None,
    }
    assert dict(numbers(line)) == {"a": 1.0, "b/update": 2.0, "b/c/d": 0.5}


def test_tensorboard_is_written_where_it_is_installed_and_told_where_it_is_missing(tmp_path: Path) -> None:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError:
        with pytest.raises(TrainError, match="install the extra 'train'"):
            MetricsLog(tmp_path, tensorboard=True)
        MetricsLog(tmp_path).write("update", 1, {"a": 1.0})
        return
    log = MetricsLog(tmp_path, tensorboard=True)
    log.write("update", 1, {"a": 1.0})
    log.close()
    assert list((tmp_path / "tensorboard").iterdir())
