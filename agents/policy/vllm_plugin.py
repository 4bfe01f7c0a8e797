"""A plugin that vLLM loads in all its processes: on a processor, what has no adapter gets none.

vLLM says by an index of -1 that a row of a batch has no adapter. Its operations for processors take that index as
it is, and so the last adapter that is loaded: a seat that plays the base model gets, in a batch with one that plays
an adapter, some of that adapter too. https://github.com/vllm-project/vllm/pull/48421 describes it. Here such rows
keep what they had; with operations that do so themselves it changes nothing.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

OPERATIONS = ("bgmv_shrink", "bgmv_expand", "bgmv_expand_slice")
"""Those that read adapters; the others are made of them."""


def register() -> None:
    """Mend vLLM's operations in this process, where it runs on a processor. The entry point of the plugin."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    try:
        from vllm.lora.ops.torch_ops import lora_ops
        from vllm.lora.punica_wrapper import punica_cpu
    except ImportError:  # a version that does it in another way
        return
    for name in OPERATIONS:
        operation = getattr(lora_ops, name, None)
        if operation is None or getattr(operation, "__wrapped__", None) is not None:
            continue
        mended = sparing(operation)
        for module in (lora_ops, punica_cpu):
            if getattr(module, name, None) is operation:
                setattr(module, name, mended)


def sparing(operation: Callable[..., None]) -> Callable[..., None]:
    """Return `operation` (inputs, weights, output, indices, …), sparing the rows of output whose index is below 0."""

    @wraps(operation)
    def mended(inputs: Any, weights: Any, output: Any, indices: Any, *rest: Any, **named: Any) -> None:
        bare = indices < 0
        if len(indices) != len(output) or not bool(bare.any()):
            operation(inputs, weights, output, indices, *rest, **named)
            return
        kept = output[bare]
        operation(inputs, weights, output, indices, *rest, **named)
        output[bare] = kept

    return mended
