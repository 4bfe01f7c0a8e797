"""A fresh model is written whole or not at all, in the shape that was asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from agents.errors import BadLearner
from agents.policy.presets import tiny_folder
from agents.policy.weights import folder_tensors
from agents.training.fresh import PROVENANCE, make_fresh


def fresh(folder: Path, *, seed: int = 1, hidden: int = 32, layers: int = 1) -> Path:
    return make_fresh(folder, tokenizer=tiny_folder(), seed=seed, hidden=hidden, layers=layers)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh model of two layers, in a folder that had to be made with those above it."""
    return fresh(tmp_path_factory.mktemp("fresh") / "above" / "model", hidden=64, layers=2)


def test_it_has_the_shape_that_was_asked_for(made: Path) -> None:
    config = read(made / "config.json")
    assert (config["model_type"], config["hidden_size"], config["num_hidden_layers"]) == ("llama", 64, 2)
    tensors = folder_tensors(made)
    assert tensors["model.embed_tokens.weight"].shape == (config["vocab_size"], 64)
    assert {name.split(".")[2] for name in tensors if ".layers." in name} == {"0", "1"}


def test_what_it_is_stands_beside_it(made: Path) -> None:
    told = read(made / PROVENANCE)
    assert told["fresh"] == {"seed": 1, "hidden": 64, "layers": 2}
    sizes = [tensor.shape for tensor in folder_tensors(made).values()]
    assert told["model"]["parameters"] == sum(int(torch.Size(size).numel()) for size in sizes)
    assert told["model"]["vocabulary"] == read(made / "config.json")["vocab_size"]


def test_it_reads_text_as_the_model_whose_tokenizer_it_took(made: Path) -> None:
    from agents.policy.chat import ChatTokenizer

    ours, theirs = ChatTokenizer(made).inner, ChatTokenizer(tiny_folder()).inner
    text = "I trust seat 2, and reject."
    assert ours(text)["input_ids"] == theirs(text)["input_ids"]
    assert ours.chat_template == theirs.chat_template and len(ours) == len(theirs)


def test_nothing_else_is_left_beside_it(made: Path) -> None:
    assert list(made.parent.iterdir()) == [made]


def test_the_chance_of_others_is_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    fresh(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), before)


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert read(fresh(tmp_path / "model") / PROVENANCE)["fresh"]["layers"] == 1


def test_a_folder_with_something_else_is_neither_taken_nor_touched(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(BadLearner) as error:
        fresh(folder)
    assert str(error.value) == f"{folder}: cannot write the fresh model: Directory not empty"
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert list(tmp_path.iterdir()) == [folder], "nothing half-made is left"


def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder, why in (
        (tmp_path / "file", "Not a directory"),
        (tmp_path / "file" / "deeper" / "model", "Not a directory"),
        (tmp_path / "file" / "model", "File exists"),
    ):
        with pytest.raises(BadLearner) as error:
            fresh(folder)
        assert str(error.value) == f"{folder}: cannot write the fresh model: {why}"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_that_was_cut_off_before_it_was_whole_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **rest: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(
            BadLearner, match=r"model: cannot write the fresh model: No space left on device$"
        ):
            fresh(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    assert fresh(tmp_path / "model").is_dir(), "the next try makes it"
