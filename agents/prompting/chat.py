"""What a prompt is made of, whoever answers it: the messages of a chat, and what the answer may be."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple


class Message(NamedTuple):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a completion may be. Exactly one field is set; a completion without a constraint is free text.

    Args:
        choices: the whole completion is one of these strings, no two alike, none empty.
        schema: the completion is JSON of this schema.
    """

    choices: tuple[str, ...] | None = None
    schema: dict[str, Any] | None = field(default=None, hash=False)
