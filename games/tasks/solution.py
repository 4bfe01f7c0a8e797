"""What a search for a shortest plan answers."""

from typing import NamedTuple

SOLVABLE, UNSOLVABLE, UNKNOWN = "solvable", "unsolvable", "unknown"
MAX_NODES = 200_000


class Solution(NamedTuple):
    """What the solver found.

    `length` and `plan` (a shortest one) are there if `status` is `solvable`. `unsolvable` is proven: no plan
    exists, or none within `max_steps`. `unknown` means that `max_nodes` nodes were not enough to tell.
    """

    status: str
    length: int | None
    plan: tuple[str, ...] | None
    nodes: int
