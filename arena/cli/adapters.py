"""`arena adapters`: the adapter versions that can play as `policy:NAME`."""

from pathlib import Path
from typing import Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    print_json,
    stdout_console,
    table,
)


@click.group()
@debug_option
def adapters() -> None:
    """List, publish and retire the adapters of language models."""


@adapters.command("list")
@home_option
@config_option
@json_option
@debug_option
def list_(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """List all adapter versions of the home.

    How many matches one has played is counted in the records below HOME/replays.
    """
    from arena.adapter_listing import adapters_in, matches_by_adapter, row

    where = _home(home, config_file)
    store = adapters_in(where)
    played = matches_by_adapter(where)
    rows = [row(adapter, played[adapter.ref]) for adapter in store.all()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"{store.root}: no adapters; `arena adapters publish DIR --name NAME` adds one")
        return
    shown = table(
        "", ["adapter", "kind", "belongs to", "created", "size", "matches", ""], right=["size", "matches"]
    )
    shown.columns[0].no_wrap = shown.columns[3].no_wrap = True
    for one in rows:
        note = "damaged" if one["problem"] else "retired" if one["retired"] else ""
        size = "?" if one["bytes"] is None else size_text(one["bytes"])
        made = str(one["created"])[:16].replace("T", " ")
        shown.add_row(one["ref"], one["kind"], one["base"], made, size, str(one["matches"]), note)
    stdout_console().print(shown)


@adapters.command()
@click.argument("ref", metavar="NAME[@VERSION]")
@home_option
@config_option
@json_option
@debug_option
def show(ref: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Show one version, and check its files.

    They must be those that were published; exit code 1 where they were changed. NAME alone is the version that
    `policy:NAME` plays now.
    """
    from arena.adapter_listing import adapters_in, details, find, matches_by_adapter

    where = _home(home, config_file)
    store = adapters_in(where)
    adapter = find(store, ref)
    found = details(store, adapter, matches_by_adapter(where)[adapter.ref])
    if as_json:
        print_json(found)
    else:
        _show(found)
    if found["problem"]:
        raise click.exceptions.Exit(1)


@adapters.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--name", required=True, metavar="NAME", help="What it is called: it then plays as policy:NAME."
)
@click.option("--parent", metavar="REF", help="The version that it was trained from.")
@click.option(
    "--model",
    metavar="MODEL",
    help="What it belongs to: tiny, smollm2, or a folder.  [default: the configured model]",
)
@home_option
@config_option
@json_option
@debug_option
def publish(
    folder: Path,
    name: str,
    parent: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Publish the adapter in DIR as the next version of NAME.

    DIR is what peft writes (adapter_config.json, adapter_model.safetensors), or a whole set of weights. It is
    copied, and never changed again: new matches take the new version, a match that goes on keeps its own.
    """
    from arena.adapter_listing import publish as publish_
    from arena.adapter_listing import row
    from arena.config import load

    settings = load(file=config_file, flags={"home": home}).settings
    chosen = settings.policy.model if model is None else model
    if model is None and settings.policy.backend == "openai":
        raise click.UsageError(
            "--model: the configured model is a server's; say which preset or folder the adapter belongs to",
            click.get_current_context(),
        )
    adapter = publish_(settings.home, name, folder, model=chosen, parent=parent or "")
    if as_json:
        print_json(row(adapter, 0))
        return
    click.echo(f"{adapter.ref}: a {adapter.kind} adapter of {adapter.base}, in {adapter.path}")
    click.echo(f"It plays as policy:{adapter.name}, and as policy:{adapter.ref} also after a newer one.")


@adapters.command()
@click.argument("ref", metavar="NAME@VERSION")
@home_option
@config_option
@json_option
@debug_option
def retire(ref: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Take NAME@VERSION from what new matches play.

    Its files stay, for the matches that go on.
    """
    from arena.adapter_listing import adapters_in, matches_by_adapter, row

    where = _home(home, config_file)
    adapter = adapters_in(where).retire(ref)
    if as_json:
        print_json(row(adapter, matches_by_adapter(where)[adapter.ref]))
        return
    click.echo(f"{adapter.ref}: retired; no new match plays it")


def _home(home: Path | None, config_file: Path | None) -> Path:
    from arena.config import load

    return load(file=config_file, flags={"home": home}).settings.home


def _show(found: dict[str, Any]) -> None:
    lora = found["lora"]
    parent = ", ".join(found["ancestors"]) or "the model as it is"
    lines = {
        "adapter": found["ref"] + (" (retired)" if found["retired"] else ""),
        "kind": found["kind"],
        "belongs to": found["base"],
        "trained from": parent,
        "created": found["created"],
        "parameters": "?" if found["parameters"] is None else f"{found['parameters']:,}",
        "size": "?" if found["bytes"] is None else size_text(found["bytes"]),
        "LoRA": ""
        if lora is None
        else f"rank {lora['rank']}, alpha {lora['alpha']:g}, {', '.join(lora['targets'])}",
        "matches": str(found["matches"]),
        "files": found["path"],
    }
    shown = table("", ["", ""])
    shown.show_header = False
    shown.columns[0].no_wrap = True
    for name, value in lines.items():
        if value:
            shown.add_row(name, value)
    for name, digest in sorted(found["files"].items()):
        shown.add_row("", f"{name}  {digest[:12]}")
    shown.add_row("checked", found["problem"] or "every file is what was published")
    stdout_console().print(shown)


def size_text(size: int) -> str:
    """Return a size in bytes for people."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
