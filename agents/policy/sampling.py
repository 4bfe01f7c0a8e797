"""Drawing tokens: the sampling distribution, and the log-probability of what was drawn under exactly that."""

from typing import Any

import numpy as np
import numpy.typing as npt


def draw(
    scores: Any,
    *,
    temperatures: npt.NDArray[np.float64],
    top_ps: npt.NDArray[np.float64],
    uniforms: npt.NDArray[np.float64],
) -> tuple[list[int], list[float]]:
    """Draw one column of each row.

    Args:
        scores: logits [rows, columns]; minus infinity where a column may not be drawn.
        temperatures: by row; 0 takes the highest, with log-probability 0.
        top_ps: by row, the mass of the likeliest columns that may be drawn.
        uniforms: by row, in 0 … 1: the same number draws the same column, whatever the other rows are.

    Returns the columns and their natural log-probabilities.
    """
    import torch

    if scores.device.type == "mps":  # which has no float64
        scores = scores.cpu()
    scores = scores.double()
    greedy = temperatures == 0
    if greedy.all():
        return scores.argmax(-1).tolist(), [0.0] * len(greedy)
    heat = torch.from_numpy(np.where(greedy, 1.0, temperatures)).to(scores.device)[:, None]
    logprobs = torch.log_softmax(scores / heat, -1)
    if (top_ps < 1).any():
        logprobs = _nucleus(logprobs, torch.from_numpy(top_ps).to(scores.device)[:, None])
    mass = logprobs.exp().cumsum(-1)
    whole = mass[:, -1:].contiguous()
    aim = torch.from_numpy(uniforms).to(scores.device)[:, None] * whole
    # Rounding may put the aim on the whole mass itself: then it is the last column that has any.
    columns = torch.minimum(torch.searchsorted(mass, aim, right=True), torch.searchsorted(mass, whole))
    if greedy.any():
        flags = torch.from_numpy(greedy).to(scores.device)[:, None]
        columns = torch.where(flags, scores.argmax(-1, keepdim=True), columns)
        logprobs = torch.where(flags, torch.zeros_like(logprobs), logprobs)
    drawn = logprobs.gather(1, columns)[:, 0]
    return columns[:, 0].tolist(), drawn.tolist()


def _nucleus(logprobs: Any, top_ps: Any) -> Any:
    """Keep the fewest likeliest columns that together have the mass `top_ps`, and norm what is left."""
    import torch

    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.exp()
    # Of a whole mass nothing is beyond, however sums are rounded.
    beyond = (probabilities.cumsum(-1) - probabilities >= top_ps) & (top_ps < 1)
    beyond[:, 0] = False
    kept = ordered.masked_fill(beyond, float("-inf"))
    return torch.log_softmax(torch.empty_like(kept).scatter_(-1, order, kept), -1)
