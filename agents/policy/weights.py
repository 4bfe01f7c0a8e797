"""What weights on disk are, from the headers of safetensors files: without torch, and nothing in them is executed."""

import json
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from agents.errors import BadModel

SUFFIX = ".safetensors"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""What the format itself allows."""


class Tensor(NamedTuple):
    """One tensor of a file: its element type, as safetensors writes it (`F32`), and its shape."""

    dtype: str
    shape: tuple[int, ...]


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of one file, by name. Raises `BadModel` where it is not a whole safetensors file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as opened:
            length = int.from_bytes(opened.read(LENGTH_BYTES), "little")
            if not 2 <= length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
                raise ValueError("its header's length is not one")
            header: dict[str, Any] = json.loads(opened.read(length))
        found: dict[str, Tensor] = {}
        end = 0
        for name, entry in header.items():
            if name != "__metadata__":
                found[name] = Tensor(str(entry["dtype"]), tuple(map(int, entry["shape"])))
                end = max(end, int(entry["data_offsets"][1]))
        if LENGTH_BYTES + length + end != size:
            raise ValueError("it is cut short, or something follows its tensors")
    except OSError as error:
        raise BadModel(f"{path}: cannot read the weights: {error.strerror or error}") from None
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise BadModel(f"{path}: no safetensors file: {str(error)[:100]}") from None
    return found


def folder_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of all safetensors files in `folder`, none where there is no such file."""
    found: dict[str, Tensor] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        found |= read_tensors(path)
    return found


def count_parameters(tensors: dict[str, Tensor]) -> int:
    """Return how many numbers the tensors hold."""
    return sum(prod(tensor.shape) for tensor in tensors.values())


def read_json(path: Path) -> dict[str, Any]:
    """Return a file of a model that holds a JSON object. Raises `BadModel`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadModel(f"{path}: cannot read the file: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise BadModel(f"{path}: no valid JSON") from None
    if not isinstance(value, dict):
        raise BadModel(f"{path}: no JSON object")
    return value
