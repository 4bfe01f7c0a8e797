"""`arena policy info`: which language model plays as `policy`."""

from pathlib import Path
from typing import Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    policy_options,
    print_json,
    stdout_console,
    table,
)
from games.text import neutralise


@click.command()
@policy_options
@home_option
@config_option
@json_option
@debug_option
def info(
    backend: str | None, model: str | None, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Say what plays as `policy`: model, tokenizer, prompts, adapters.

    It reads files alone: nothing is loaded, no server is asked (`arena doctor` tries all of it).
    """
    from arena.config import load
    from arena.policy_info import examine

    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    found = examine(settings.policy, home=settings.home)
    if as_json:
        print_json(found)
        return
    shown = table("", ["", ""])
    shown.show_header = False
    shown.columns[0].no_wrap = True
    for name, value in _lines(found):
        shown.add_row(name, value)
    stdout_console().print(shown)


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("model", f"{found['model']}: {found['title']}"), ("back end", found["backend"])]
    if found["backend"] == "openai":
        lines += [("server", found["url"]), ("key", found["key"])]
        context = found["context_tokens"]
        lines.append(("context", "what the server says" if context is None else f"{context} tokens"))
    elif found["folder"] is None:
        lines.append(("folder", "none yet: it is converted from its wheel at its first use"))
    else:
        lines += _files(found)
    budget = found["budget_tokens"]
    bound = "" if budget is None else f", at most {budget} tokens each"
    lines.append(("prompts", ", ".join(found["prompts"]) + bound))
    sampled = f"mode {found['mode']}, temperature {found['temperature']:g}, top-p {found['top_p']:g}"
    lines.append(("asked in", sampled))
    names = ", ".join(f"policy:{one['ref']}" for one in found["adapters"]) or "none"
    others = found["other_adapters"]
    lines.append(("adapters", names + (f" (and {others} retired or of other models)" if others else "")))
    lines += [("missing", line) for line in found["missing"]]
    return lines


def _files(found: dict[str, Any]) -> list[tuple[str, str]]:
    from arena.cli.adapters import size_text

    lines = [("folder", found["folder"]), ("in records", found["identity"])]
    if found["parameters"] is not None:
        size = size_text(found["weights_bytes"])
        lines.append(("weights", f"{found['parameters']:,} parameters, {found['dtype']}, {size}"))
    if found["architecture"] is not None:
        lines.append(("kind", found["architecture"]))
    if found["tokenizer"] is not None:
        tokenizer = found["tokenizer"]
        lines.append(("tokenizer", f"{tokenizer['kind']}, {tokenizer['vocabulary']:,} tokens"))
    lines.append(("context", f"{found['context_tokens']:,} tokens, prompt and answer together"))
    if found["provenance"] is not None:
        lines.append(("made by", _provenance(found["provenance"])))
    return lines


def _provenance(provenance: dict[str, Any]) -> str:
    data = provenance.get("data")
    matches = data.get("matches") if isinstance(data, dict) else None
    parts = [str(provenance.get("command") or "an unknown command")]
    if isinstance(matches, dict):
        parts.append("from matches of " + ", ".join(f"{game} ({count})" for game, count in matches.items()))
    if isinstance(provenance.get("seconds"), int | float):
        parts.append(f"in {provenance['seconds']:.0f} s")
    return neutralise("; ".join(parts))
