"""The contract of credit: what a method is given, and what it says of a team's result.

A method divides the result of one team in one recorded match: a share for each of its seats, and of that share a
part for each decision of the seat. Methods are interchangeable, and made by name.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from math import fsum
from typing import Any, ClassVar, Literal, Protocol

from agents.errors import BadCredit
from replays.record import Record

Label = Literal["good", "bad"]

METHODS = {
    "equal": "agents.credit.equal:Equal",
    "leave-one-out": "agents.credit.counterfactual:LeaveOneOut",
    "shapley": "agents.credit.counterfactual:Shapley",
    "adca": "agents.credit.fused:Adca",
}
"""Where each method is, by the name under which a command line knows it."""


@dataclass(frozen=True, slots=True)
class StepCredit:
    """What one decision brought its team. `label` says whether it was shown to help or to harm; None is neither."""

    ply: int
    seat: int
    credit: float
    label: Label | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of `contribution`, where the method has one; the label goes by it."""
    contribution: float | None = None
    """What this decision alone added, as replays say; without the part of the seat's share that is spread evenly."""


@dataclass(frozen=True, slots=True)
class SeatCredit:
    """A seat's share of the result, with the 95 % interval of the estimate (None where the method has none)."""

    seat: int
    player: str
    role: str
    credit: float
    low: float | None = None
    high: float | None = None
    contribution: float | None = None
    """What the seat's decisions added to what the reference gets; a counterfactual method's share before `baseline`."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What it took: matches played on from somewhere, calls of a model, seconds."""

    replays: int = 0
    model_calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Credit:
    """A team's result, divided.

    `result` is the mean return of the team's seats, in the game's own unit. Where the method is `efficient` the
    seats' shares sum to it exactly. `baseline` is the part of the result that no seat's decisions account for, and
    is contained in the shares.
    """

    method: str
    team: str
    result: float
    seats: tuple[SeatCredit, ...]
    steps: tuple[StepCredit, ...] = ()
    cost: Cost = Cost()
    baseline: float | None = None
    notes: tuple[str, ...] = ()
    """In words, what a reader must know of how it came about."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return {
            "team": self.team,
            "result": self.result,
            "method": self.method,
            "seats": [asdict(seat) for seat in self.seats],
            "steps": [asdict(step) for step in self.steps],
            "baseline": self.baseline,
            "cost": asdict(self.cost),
            "notes": list(self.notes),
        }


class Method(Protocol):
    """Divides a team's result."""

    name: ClassVar[str]
    efficient: ClassVar[bool]
    """Whether the shares sum to the result."""

    async def credit(self, record: Record, *, team: str) -> Credit:
        """Return the credit of `team` in a whole record. Raises a `CreditError` in one line."""
        ...


def make_method(name: str, **settings: Any) -> Method:
    """Return the method called `name` with its settings. Raises `BadCredit` for an unknown name or setting."""
    module, _, attribute = METHODS.get(name, "").partition(":")
    if not module:
        raise BadCredit(f"credit method: got {name[:40]!r}, allowed are {', '.join(METHODS)}")
    try:
        made: Method = getattr(import_module(module), attribute)(**settings)
    except TypeError as error:
        raise BadCredit(f"credit method {name}: {error}") from None
    return made


def exact(shares: Sequence[float], *, total: float) -> list[float]:
    """Return the shares moved by what rounding lost, so that `math.fsum` of them is `total`.

    It is so exactly unless no floats of the shares' size sum to it; then to the last place of the largest share.
    """
    found = list(shares)
    if not found:
        return found
    at = max(range(len(found)), key=lambda i: abs(found[i]))
    others = [share for i, share in enumerate(found) if i != at]
    found[at] = fsum([total, *(-share for share in others)])
    for _ in range(8):
        gap = fsum([total, *(-share for share in found)])
        if fsum(found) == total:
            break
        small = min(range(len(found)), key=lambda i: (found[i] == 0.0, abs(found[i])))
        found[small] += gap
    return found
