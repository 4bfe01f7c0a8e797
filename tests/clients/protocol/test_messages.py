"""The messages: their types, their bounds, and the schema of them all."""

from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from clients.protocol import messages
from clients.protocol.messages import CLIENT_MESSAGES, SERVER_MESSAGES, Events, Join, Message, schema


def test_the_types_are_named_once_and_by_their_sender() -> None:
    names = [kind.model_fields["type"].default for kind in CLIENT_MESSAGES + SERVER_MESSAGES]
    assert len(set(names)) == len(names)
    assert all(kind.sender == "client" for kind in CLIENT_MESSAGES)
    assert all(kind.sender == "server" for kind in SERVER_MESSAGES)
    declared = {
        value
        for value in vars(messages).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    }
    assert declared == set(CLIENT_MESSAGES + SERVER_MESSAGES)


@pytest.mark.parametrize(
    "event", [["a"], ["a", {}, None, 1], [1, {}], ["a", []], ["a", {}, "x"], ["a", {}, [True]]]
)
def test_an_event_has_its_parts(event: Any) -> None:
    with pytest.raises(ValidationError):
        Events(match="m", first=0, events=[event])


def test_names_and_ids_are_bounded() -> None:
    with pytest.raises(ValidationError):
        Join(id="1", name="x" * 201)
    with pytest.raises(ValidationError):
        Join(id="")


def test_the_schema_is_one() -> None:
    whole = schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    validator = jsonschema.Draft202012Validator(whole)
    validator.validate({"type": "ping", "id": "1"})
    assert not validator.is_valid({"id": "1"})
    assert not validator.is_valid({"type": "unheard of"})
