"""Rows without an adapter keep what they had, whatever the operation that reads adapters does."""

from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest
import torch

from agents.policy.vllm_plugin import OPERATIONS, register, sparing


def added(
    inputs: torch.Tensor,
    weights: torch.Tensor,
    output: torch.Tensor,
    indices: torch.Tensor,
    scale: float = 1.0,
) -> None:
    """Do as vLLM's operations for processors do: an index of -1 is the last adapter."""
    output += scale * torch.einsum("bi,boi->bo", inputs, weights[indices])


def test_rows_without_an_adapter_are_spared() -> None:
    inputs, weights = torch.ones(4, 2), torch.stack([torch.full((3, 2), 1.0), torch.full((3, 2), 10.0)])
    output = torch.zeros(4, 3)
    sparing(added)(inputs, weights, output, torch.tensor([-1, 0, -1, 1]), scale=0.5)
    assert output.tolist() == [[0] * 3, [1] * 3, [0] * 3, [10] * 3]


def test_nothing_changes_where_all_rows_have_one_or_rows_are_padded() -> None:
    inputs, weights = torch.ones(2, 2), torch.ones(1, 3, 2)
    output = torch.zeros(2, 3)
    sparing(added)(inputs, weights, output, torch.tensor([0, 0]))
    assert output.tolist() == [[2] * 3] * 2
    wider = torch.zeros(2, 3)
    sparing(added)(torch.ones(1, 2), weights, wider, torch.tensor([0]))
    assert wider.tolist() == [[2] * 3] * 2


@pytest.mark.skipif(find_spec("evoke_arena") is None, reason="not installed as a distribution")
def test_vllm_finds_the_plugin() -> None:
    found = [entry for entry in entry_points(group="vllm.general_plugins") if entry.name == "evoke_arena"]
    assert [entry.load() for entry in found] == [register]


@pytest.mark.vllm
@pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_vllm_still_has_the_operations_that_it_mends() -> None:
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        pytest.skip("vllm runs on a GPU here, whose operations are others")
    from vllm.lora.ops.torch_ops import lora_ops
    from vllm.lora.punica_wrapper import punica_cpu

    register()
    register()
    for name in OPERATIONS:
        operation = getattr(lora_ops, name)
        assert (
            operation.__wrapped__ is not None and getattr(operation.__wrapped__, "__wrapped__", None) is None
        )
        assert getattr(punica_cpu, name) is operation
