"""The generated parts of docs/protocol.md, and docs/protocol.schema.json."""

import json
import re
from pathlib import Path
from typing import Any

import msgpack

from clients.protocol.client import ClientConnection
from clients.protocol.codec import JSON, MAX_BATCH, MAX_DEPTH, MAX_ITEMS, MSGPACK, encode
from clients.protocol.messages import (
    CLIENT_MESSAGES,
    ERROR_CODES,
    MAX_CLIENT_BYTES,
    MAX_SERVER_BYTES,
    SERVER_MESSAGES,
    Act,
    Message,
    Ping,
    Turn,
    schema,
)
from tests.clients.fake_server import ModelArena

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"
SCHEMA = PAGE.with_name("protocol.schema.json")
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def protocol_page() -> str:
    """Return docs/protocol.md with its generated parts as they should be."""
    parts = {
        "limits": _limits,
        "codes": _codes,
        "example": _example,
        "encodings": _encodings,
        "client": lambda: _messages(CLIENT_MESSAGES),
        "server": lambda: _messages(SERVER_MESSAGES),
    }
    text = PAGE.read_text(encoding="utf-8")
    assert sorted(name for _, name, _ in PART.findall(text)) == sorted(parts)
    return PART.sub(lambda found: f"{found[1]}\n{parts[found[2]]()}\n{found[3]}", text)


def schema_text() -> str:
    """Return docs/protocol.schema.json as it should be."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def example() -> list[tuple[str, str]]:
    """Return the frames of one short match, as JSON, with who sent each (`client` or `server`)."""
    arena = ModelArena(name="example", token="the-token")
    session = arena.connect(JSON)
    client = ClientConnection(
        subprotocol=JSON, token="the-token", client="example 1", capabilities=("schema",), nonce="9f2c"
    )
    client.start()
    client.join(game="kuhn", name="Ada")
    frames: list[tuple[str, str]] = []
    while True:
        if up := client.frames_to_send():
            for frame in up:
                frames.append(("client", str(frame)))
                session.receive(frame)
        elif down := session.frames_to_send():
            for frame in down:
                frames.append(("server", str(frame)))
                for message in client.receive(frame):
                    if isinstance(message, Turn):
                        client.act("m1", request=message.request, action="bet", thought="Worth a try.")
        else:
            return frames


def _limits() -> str:
    rows = [
        ("bytes of a frame from a client", f"{MAX_CLIENT_BYTES:,} (`welcome` has `max_bytes`)"),
        ("bytes of a frame from a server", f"{MAX_SERVER_BYTES:,}"),
        ("events in one message", f"{MAX_BATCH}"),
        ("items of one list or map", f"{MAX_ITEMS:,}"),
        ("lists and maps within one another", f"{MAX_DEPTH}"),
    ]
    return (
        "\n".join(["| what | limit |", "|---|---|", *(f"| {what} | {limit} |" for what, limit in rows)])
        + "\n"
    )


def _codes() -> str:
    rows = (f"| `{code}` | {meaning} |" for code, meaning in ERROR_CODES.items())
    return "\n".join(["| code | meaning |", "|---|---|", *rows]) + "\n"


def _example() -> str:
    blocks = []
    for sender, frame in example():
        arrow = "→" if sender == "client" else "←"
        kind = json.loads(frame)["type"]
        blocks.append(f"{arrow} `{kind}`\n\n```json\n{_folded(json.loads(frame))}\n```\n")
    return "\n".join(blocks)


def _folded(value: dict[str, Any], width: int = 100) -> str:
    """Return a message over several lines, a key or some in each."""
    lines, line = [], ""
    for key, item in value.items():
        part = f"{json.dumps(key)}: {json.dumps(item, ensure_ascii=False)}"
        if line and len(line) + len(part) + 2 > width:
            lines.append(line + ",")
            line = part
        else:
            line = f"{line}, {part}" if line else part
    return "{" + "\n ".join([*lines, line]) + "}"


def _encodings() -> str:
    message = Ping(id="a1")
    packed = encode(message, subprotocol=MSGPACK)
    assert isinstance(packed, bytes) and msgpack.unpackb(packed)["type"] == "ping"
    answer = Act(match="m1", request=3, action=["0", "2"])
    rows = [
        f"- `{JSON}`, a text frame: `{encode(message, subprotocol=JSON)!s}`",
        f"- `{MSGPACK}`, a binary frame, in hexadecimal: `{packed.hex(' ')}`",
        f"- an answer of several options: `{encode(answer, subprotocol=JSON)!s}`",
    ]
    return "\n".join(rows) + "\n"


def _messages(kinds: tuple[type[Message], ...]) -> str:
    definitions = schema()["$defs"]
    blocks = []
    for kind in kinds:
        about = definitions[kind.__name__]
        text = " ".join(about["description"].split("\n\n"))
        blocks.append(f"### {about['properties']['type']['const']}\n\n{' '.join(text.split())}\n")
        rows = [
            f"| `{name}` | {_type(field)} | {_default(field, name in about['required'])} |"
            for name, field in about["properties"].items()
            if name != "type"
        ]
        if rows:
            blocks.append("\n".join(["| key | value | default |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(blocks)


def _default(field: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = field.get("default")
    return "may be absent" if default is None else f"`{json.dumps(default)}`"


def _type(field: dict[str, Any]) -> str:
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option.get("type") != "null")
    kind = field.get("type")
    if kind == "array":
        if "prefixItems" in field:
            return "event: `[kind, data]` or `[kind, data, audience]`"
        longest = f", at most {field['maxItems']}" if "maxItems" in field else ""
        return f"list of {_type(field.get('items', {}))}{longest}"
    if kind == "object":
        inner = field.get("additionalProperties")
        return f"map of {_type(inner)}" if isinstance(inner, dict) else "map"
    if kind == "string":
        return f"string of at most {field['maxLength']}" if "maxLength" in field else "string"
    if kind == "integer":
        return "whole number" if field.get("minimum") is None else f"whole number from {field['minimum']}"
    return {"number": "number", "boolean": "true or false", None: "any value"}[kind]
