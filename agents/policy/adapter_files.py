"""Whether a folder may become an adapter version: judged by its files alone, before anything is loaded.

Only formats that hold numbers and text are taken: a pickle runs its author's code wherever it is opened. A LoRA
adapter must be one that every back end plays, and fit the weights it says it belongs to.
"""

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from agents.errors import BadAdapter, BadModel
from agents.policy.chat import describe_model
from agents.policy.vllm_local import LORA_RANKS
from agents.policy.weights import Tensor, count_parameters, folder_tensors, read_json, read_tensors

SUFFIXES = (".safetensors", ".json", ".jinja", ".model", ".txt", ".md")
"""Of the files that an adapter may consist of."""

LORA_CONFIG = "adapter_config.json"
LORA_WEIGHTS = "adapter_model.safetensors"
MODEL_CONFIG = "config.json"
PREFIX = "base_model.model."
"""With which peft begins the names of a LoRA adapter's tensors."""


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What a folder holds. `rank`, `alpha` and `targets` are those of a LoRA adapter, else 0 and none."""

    kind: Literal["lora", "full"]
    parameters: int
    bytes: int
    rank: int = 0
    alpha: float = 0.0
    targets: tuple[str, ...] = ()
    trained_on: str = ""
    """The model as its maker called it, which may be a folder elsewhere."""


def read_adapter(folder: Path) -> AdapterFacts:
    """Return what `folder` holds. Raises `BadAdapter`."""
    try:
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        if not (folder / LORA_CONFIG).is_file():
            return AdapterFacts("full", count_parameters(folder_tensors(folder)), size)
        config = read_json(folder / LORA_CONFIG)
        return AdapterFacts(
            kind="lora",
            parameters=count_parameters(read_tensors(folder / LORA_WEIGHTS)),
            bytes=size,
            rank=_rank(config),
            alpha=_alpha(config, folder / LORA_CONFIG),
            targets=_targets(config, folder / LORA_CONFIG),
            trained_on=str(config.get("base_model_name_or_path") or ""),
        )
    except BadModel as error:
        raise BadAdapter(str(error)) from None
    except OSError as error:
        raise BadAdapter(f"{folder}: cannot read the adapter: {error.strerror or error}") from None


def check_files(folder: Path, *, base: Path) -> AdapterFacts:
    """Return what `folder` holds, once it is known to be an adapter for the model in the folder `base`.

    Raises `BadAdapter` in one line for anything that is not.
    """
    if not folder.is_dir():
        raise BadAdapter(f"{folder}: no folder; an adapter is a folder with {LORA_CONFIG} or {MODEL_CONFIG}")
    if not any((folder / name).is_file() for name in (LORA_CONFIG, MODEL_CONFIG)):
        raise BadAdapter(f"{folder}: it holds no {LORA_CONFIG} (LoRA) and no {MODEL_CONFIG} (whole weights)")
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            raise BadAdapter(f"{path}: an adapter is a folder of plain files")
        if path.suffix not in SUFFIXES:
            raise BadAdapter(
                f"{path}: allowed are files that end in {', '.join(SUFFIXES)}: weights are safetensors, and "
                "nothing is taken that could run code"
            )
    facts = read_adapter(folder)
    try:
        if facts.kind == "lora":
            _check_lora(folder, base)
            _check_trained_on(folder, facts.trained_on, base)
        else:
            _check_full(folder, base)
    except BadModel as error:
        raise BadAdapter(str(error)) from None
    except OSError as error:
        raise BadAdapter(f"{folder}: cannot read the adapter: {error.strerror or error}") from None
    return facts


def _alpha(config: dict[str, Any], where: Path) -> float:
    alpha = config.get("lora_alpha") or 0
    if not isinstance(alpha, int | float) or not isfinite(alpha):
        raise BadAdapter(f"{where}: lora_alpha: got {str(alpha)[:60]!r}, a number is needed")
    return float(alpha)


def _targets(config: dict[str, Any], where: Path) -> tuple[str, ...]:
    targets = config.get("target_modules") or []
    listed = [targets] if isinstance(targets, str) else targets
    if not isinstance(listed, list) or not all(isinstance(target, str) for target in listed):
        raise BadAdapter(f"{where}: target_modules: got {str(targets)[:60]!r}, names are needed")
    return tuple(sorted(listed))


def _rank(config: dict[str, Any]) -> int:
    rank = config.get("r")
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else 0


def _check_lora(folder: Path, base: Path) -> None:
    config = read_json(folder / LORA_CONFIG)
    where = folder / LORA_CONFIG
    rank = _rank(config)
    if rank not in LORA_RANKS:
        allowed = ", ".join(map(str, LORA_RANKS))
        raise BadAdapter(f"{where}: r: got {config.get('r')!r}, the ranks that vllm plays are {allowed}")
    for name, plain in (
        ("peft_type", ("LORA", None)),
        ("bias", ("none", None)),
        ("modules_to_save", (None, [])),
        ("use_dora", (False, None)),
        ("rank_pattern", ({}, None)),
    ):
        if config.get(name) not in plain:
            raise BadAdapter(
                f"{where}: {name}: got {str(config[name])[:60]!r}, and not every back end plays that; "
                f"needed is {plain[0]!r}"
            )
    _check_shapes(
        read_tensors(folder / LORA_WEIGHTS), folder_tensors(base), rank=rank, where=folder, base=base
    )


def _check_shapes(
    ours: dict[str, Tensor], theirs: dict[str, Tensor], *, rank: int, where: Path, base: Path
) -> None:
    """Compare the shape of every low-rank matrix with the weights that it is added to."""
    if not ours:
        raise BadAdapter(f"{where / LORA_WEIGHTS}: it holds no tensors")
    for name, tensor in ours.items():
        part, _, side = name.removeprefix(PREFIX).removesuffix(".weight").rpartition(".")
        weights = theirs.get(f"{part}.weight")
        if side not in ("lora_A", "lora_B") or (theirs and (weights is None or len(weights.shape) != 2)):
            raise BadAdapter(f"{where / LORA_WEIGHTS}: {name[:120]!r} is no part of {base.name}")
        if weights is None:
            continue
        out, into = weights.shape
        needed = (rank, into) if side == "lora_A" else (out, rank)
        if tensor.shape != needed:
            raise BadAdapter(
                f"{where / LORA_WEIGHTS}: {name[:120]!r} has the shape {list(tensor.shape)}, for {base.name} and "
                f"rank {rank} it is {list(needed)}"
            )


def _check_trained_on(folder: Path, trained_on: str, base: Path) -> None:
    """Compare hashes where the model that the adapter was trained on lies on this machine."""
    other = Path(trained_on) if trained_on else None
    if other is None or not (other / MODEL_CONFIG).is_file():
        return
    ours, theirs = describe_model(base), describe_model(other)
    if ours.rpartition("@")[2] != theirs.rpartition("@")[2]:
        raise BadAdapter(f"{folder / LORA_CONFIG}: it was trained on {theirs}, the model is {ours}")


def _check_full(folder: Path, base: Path) -> None:
    if not folder_tensors(folder):
        raise BadAdapter(f"{folder}: it holds no weights; needed are *.safetensors")
    ours, theirs = (read_json(place / MODEL_CONFIG).get("vocab_size") for place in (folder, base))
    if ours != theirs:
        raise BadAdapter(f"{folder / MODEL_CONFIG}: vocab_size: got {ours}, {base.name} has {theirs}")
