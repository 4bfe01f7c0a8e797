"""What a grammar can hold of a constraint."""

import json
from typing import Any

from agents.prompting.chat import Constraint


def grammar_schema(schema: Any) -> Any:
    """Return a JSON schema without `uniqueItems`, which no grammar can hold to; who reads the answer checks it."""
    if isinstance(schema, dict):
        return {name: grammar_schema(value) for name, value in schema.items() if name != "uniqueItems"}
    if isinstance(schema, list):
        return [grammar_schema(value) for value in schema]
    return schema


def token_bound(constraint: Constraint | None, max_tokens: int) -> int:
    """Return how many tokens a completion may need: its longest text in bytes and the end token.

    `max_tokens` bounds free text, and JSON of a schema that sets no bound.
    """
    if constraint is None:
        return max_tokens
    if constraint.choices is not None:
        return 1 + max(len(choice.encode()) for choice in constraint.choices)
    longest = longest_json(constraint.schema)
    return max_tokens if longest is None else 1 + longest


def longest_json(schema: Any) -> int | None:
    """Return the bytes of the longest JSON of a schema, as Python writes it; None where that is not bounded.

    Understood is what action spaces use: `const`, `enum`, booleans, and arrays of a most length.
    """
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return _written(schema["const"])
    if "enum" in schema:
        return max(map(_written, schema["enum"]), default=None)
    if schema.get("type") == "boolean":
        return len("false")
    if schema.get("type") == "array":
        most, item = schema.get("maxItems"), longest_json(schema.get("items"))
        if isinstance(most, int) and item is not None:
            return len("[]") + most * item + max(most - 1, 0) * len(", ")
    return None


def _written(value: Any) -> int:
    return len(json.dumps(value))  # with escapes, of which none is shorter than the bytes it stands for
