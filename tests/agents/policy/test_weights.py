"""Headers of safetensors files, whole and damaged, and JSON files of models."""

import json
from pathlib import Path

import pytest

from agents.errors import BadModel
from agents.policy.presets import tiny_folder
from agents.policy.weights import count_parameters, folder_tensors, read_json, read_tensors


def write(path: Path, header: object, *, data: bytes = b"", length: int | None = None) -> Path:
    """Write a file as safetensors does, `header` as it stands."""
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(body) if length is None else length).to_bytes(8, "little") + body + data)
    return path


def test_the_tensors_of_a_file(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
    }
    found = read_tensors(write(tmp_path / "m.safetensors", header, data=bytes(26)))
    assert found == {"a.weight": ("F32", (2, 3)), "b": ("BF16", ())}
    assert count_parameters(found) == 7


def test_the_embedded_models_parameters_are_those_of_its_module() -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_folder())
    tensors = folder_tensors(tiny_folder())
    assert count_parameters(tensors) == sum(one.numel() for one in model.parameters())
    assert {tensor.dtype for tensor in tensors.values()} == {"F32"}


ONE = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}


@pytest.mark.parametrize(
    ("header", "data", "length"),
    [
        (b"", b"", None),
        (b"{", b"", None),
        (b"[]", b"", None),
        ({"a": 1}, b"", None),
        ({"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}, bytes(4), None),
        ({"a": {"dtype": "F32", "shape": [float("inf")], "data_offsets": [0, 4]}}, bytes(4), None),
        (ONE, bytes(3), None),
        (ONE, bytes(5), None),
        (ONE, bytes(4), 2**62),
        (b'{"a":' * 30_000, b"", None),
    ],
)
def test_what_is_no_whole_file_is_refused_in_one_line(
    header: object, data: bytes, length: int | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "m.safetensors", header, data=data, length=length)
    with pytest.raises(BadModel, match="no safetensors file") as caught:
        read_tensors(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="cannot read"):
        read_tensors(tmp_path / "none.safetensors")
    assert folder_tensors(tmp_path) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_json_that_is_no_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(BadModel, match="JSON"):
        read_json(tmp_path / "c.json")
