"""docs/protocol.md and docs/protocol.schema.json say what the types say."""

import json
import re

import jsonschema

from clients.protocol.codec import JSON, decode
from clients.protocol.messages import CLIENT_MESSAGES, ERROR_CODES, SERVER_MESSAGES, STALE_REASONS, Stale
from tests.clients.protocol.pages import PAGE, SCHEMA, example, protocol_page, schema_text


def test_the_page_is_what_the_types_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == protocol_page(), "run `make docs`"


def test_the_schema_is_what_the_types_say() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run `make docs`"


def test_every_message_and_code_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for kind in CLIENT_MESSAGES + SERVER_MESSAGES:
        assert f"\n### {kind.model_fields['type'].default}\n" in text
        for name, field in kind.model_fields.items():
            assert name == "type" or f"\n| `{field.alias or name}` |" in text
    for code in ERROR_CODES:
        assert f"\n| `{code}` |" in text


def test_the_example_is_a_match_from_hello_to_over() -> None:
    frames = example()
    kinds = [json.loads(frame)["type"] for _, frame in frames]
    assert kinds[:5] == ["hello", "welcome", "authenticate", "authenticated", "join"]
    assert kinds[-1] == "over" and {"seated", "events", "turn", "act", "acted"} <= set(kinds)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    blocks = re.findall(
        r"^([→←]) `(\w+)`\n\n```json\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.M
    )
    assert [(arrow, kind) for arrow, kind, _ in blocks] == [
        ("→" if sender == "client" else "←", kind) for (sender, _), kind in zip(frames, kinds, strict=True)
    ]
    for (arrow, _, text), (_, frame) in zip(blocks, frames, strict=True):
        decoded = decode(text, sender="client" if arrow == "→" else "server", subprotocol=JSON)
        assert decoded == decode(frame, sender=decoded.sender, subprotocol=JSON)
        validator.validate(json.loads(text))


def test_the_reasons_of_stale_are_those_of_its_type() -> None:
    reasons = {Stale(match="m", request=1, reason=reason).reason for reason in STALE_REASONS}  # type: ignore[arg-type]
    assert reasons == set(STALE_REASONS)
