"""Specs of policies, as players are written: `policy[:ADAPTER]` and `openai:MODEL@URL`."""

import re
from typing import NamedTuple

from agents.errors import BadModel, BadPlayer

POLICY = "policy"
OPENAI = "openai"
WORDS = (POLICY, OPENAI)

_ADAPTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(@[0-9]{1,9})?")
_URL = re.compile(r"https?://[^\s/?#]+[^\s?#]*")


class PolicySpec(NamedTuple):
    """What a spec names. `engine` tells engines apart; the others are empty where they are not part of the spec."""

    engine: str
    adapter: str = ""
    """A name, of which the newest version is taken, or NAME@VERSION."""
    model: str = ""
    url: str = ""


def is_policy(spec: str) -> bool:
    """Whether a spec is that of a policy."""
    return spec.partition(":")[0] in WORDS


def parse_spec(spec: str) -> PolicySpec:
    """Return what a policy's spec names. Raises `BadPlayer`."""
    word, colon, rest = spec.partition(":")
    if word == POLICY:
        if colon and not _ADAPTER.fullmatch(rest):
            raise BadPlayer(
                f"player: got {spec[:80]!r}, policy takes an adapter: policy:NAME or policy:NAME@VERSION"
            )
        return PolicySpec(POLICY, adapter=rest)
    model, _, url = rest.rpartition("@")
    if word != OPENAI or not model or not _URL.fullmatch(url):
        raise BadPlayer(f"player: got {spec[:80]!r}, needed is openai:MODEL@URL with an http or https URL")
    return PolicySpec(spec, model=model, url=url)


def served_model(model: str) -> PolicySpec:
    """Return what MODEL@URL names, the model of the back end `openai`. Raises `BadModel`."""
    try:
        return parse_spec(f"{OPENAI}:{model}")
    except BadPlayer:
        raise BadModel(
            f"model: got {model[:80]!r}, the back end openai needs MODEL@URL with an http or https URL"
        ) from None
