"""A judge's answers that are kept: in memory up to a number, in files for whoever comes later, and never half."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.credit.label_cache import Answer, LabelCache

KEY = "ab" + "0" * 62
GOOD = Answer((1, 0, -1))

VALUES = st.lists(st.integers(-1, 1), max_size=40).map(tuple)


def only(folder: Path) -> Path:
    (found,) = [path for path in folder.rglob("*") if path.is_file()]
    return found


def test_what_was_put_in_comes_out_for_as_many_items() -> None:
    cache = LabelCache()
    assert cache.get(KEY, 3) is None
    cache.put(KEY, GOOD)
    assert cache.get(KEY, 3) == GOOD
    assert (cache.get(KEY, 2), cache.get(KEY, 4), cache.get("cd", 3)) == (None, None, None)
    cache.put(KEY, Answer((0,)))
    assert (cache.get(KEY, 1), cache.get(KEY, 3)) == (Answer((0,)), None)


@settings(max_examples=25)
@given(st.dictionaries(st.text("0123456789abcdef", min_size=4, max_size=8), VALUES, max_size=8))
def test_another_process_finds_what_was_kept(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[str, tuple[int, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    writer = LabelCache(folder)
    for key, values in kept.items():
        writer.put(key, Answer(values))
    reader = LabelCache(folder)
    assert {key: reader.get(key, len(values)) for key, values in kept.items()} == {
        key: Answer(values) for key, values in kept.items()
    }
    files = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert files == sorted(f"{key}.json" for key in kept), "one file each, and nothing beside them"


def test_a_file_is_plain_json_under_the_start_of_its_key(tmp_path: Path) -> None:
    cache = LabelCache(tmp_path / "made" / "here")
    cache.put(KEY, GOOD)
    path = tmp_path / "made" / "here" / "ab" / f"{KEY}.json"
    assert only(tmp_path) == path and json.loads(path.read_text()) == [1, 0, -1]


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = LabelCache()
    cache.put(KEY, GOOD)
    assert cache.get("cd" + KEY, 3) is None and list(tmp_path.iterdir()) == []


def test_what_was_read_once_is_held(tmp_path: Path) -> None:
    LabelCache(tmp_path).put(KEY, GOOD)
    cache = LabelCache(tmp_path)
    assert cache.get(KEY, 7) is None, "it was read, and is of another number of items"
    only(tmp_path).unlink()
    assert cache.get(KEY, 3) == GOOD
    assert LabelCache(tmp_path).get(KEY, 3) is None


def test_what_memory_lets_go_is_still_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.credit.label_cache.MAX_HELD", 2)
    cache, keys = LabelCache(tmp_path), ["aaaa", "bbbb", "cccc"]
    for number, key in enumerate(keys):
        cache.put(key, Answer((number - 1,)))
    for _ in range(2):  # what is read again pushes others out
        assert [cache.get(key, 1) for key in keys] == [Answer((-1,)), Answer((0,)), Answer((1,))]
        assert len(cache._held) == 2


def test_memory_is_bounded_by_what_is_put_in_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.credit.label_cache.MAX_HELD", 2)
    cache = LabelCache()
    for key in ("a", "b", "a", "c"):
        cache.put(key, GOOD)
    assert [cache.get(key, 3) for key in "abc"] == [GOOD, None, GOOD]


DAMAGED = {
    "empty": b"",
    "cut": b"[1, 0",
    "too good": b"[1, 0, 2]",
    "too bad": b"[1, 0, -2]",
    "true": b"[1, 0, true]",
    "a fraction": b"[1, 0, 0.0]",
    "null inside": b"[1, 0, null]",
    "a word": b'[1, 0, "GOOD"]',
    "an object": b'{"1": 0}',
    "a number": b"1",
    "null": b"null",
    "no text": b"\xff\xfe",
    "too deep": b"[" * 100_000,
    "not a number": b"[NaN, 0, 0]",
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_file_that_is_no_answer_costs_a_call_and_is_replaced(kind: str, tmp_path: Path) -> None:
    LabelCache(tmp_path).put(KEY, GOOD)
    only(tmp_path).write_bytes(DAMAGED[kind])
    cache = LabelCache(tmp_path)
    assert cache.get(KEY, 3) is None
    cache.put(KEY, Answer((0, 0, 1)))
    assert cache.get(KEY, 3) == LabelCache(tmp_path).get(KEY, 3) == Answer((0, 0, 1))


def test_a_folder_in_a_files_place_costs_a_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ab" / f"{KEY}.json").mkdir(parents=True)
    cache = LabelCache(tmp_path)
    assert cache.get(KEY, 3) is None
    with caplog.at_level(logging.WARNING, logger="agents.credit"):
        cache.put(KEY, GOOD)
    assert cache.get(KEY, 3) == GOOD, "memory holds it"
    assert [record.getMessage() for record in caplog.records] == [
        "a judge's answer is not kept: Is a directory"
    ]


def test_a_folder_that_cannot_be_made_is_said_once_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = LabelCache(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING, logger="agents.credit"):
        cache.put(KEY, GOOD)
        cache.put("cd" + KEY, GOOD)
    assert cache.get(KEY, 3) == cache.get("cd" + KEY, 3) == GOOD
    assert [record.getMessage() for record in caplog.records] == [
        "a judge's answer is not kept: Not a directory"
    ] * 2
