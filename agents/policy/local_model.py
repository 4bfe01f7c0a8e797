"""A causal language model of transformers in this process, with the adapter versions that are loaded on it."""

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import BadAdapter, BadModel, EngineMissing, UnknownAdapter
from agents.policy.adapters import content_of
from agents.policy.base import BASE
from agents.policy.chat import ChatTokenizer, check_folder, describe_model, one_line
from agents.policy.kv import Group, Rows, Shape, Window, attend_window
from agents.policy.quiet import hush

MAX_LOADED = 8
"""Adapter versions held in memory; others are loaded again when they are asked for."""
PROBE = (3, 1, 4, 1, 5)
"""Token ids on which it is checked that the model keeps its keys and values as is assumed here."""
PROBE_TOLERANCE = 0.02
ATTENTION = "arena-rows"
"""The name by which transformers knows the attention of `agents.policy.kv`."""


@dataclass(frozen=True, slots=True)
class TransformersSettings:
    """How transformers computes.

    Args:
        model: a folder with the model's files.
        device: as torch names it, or `auto`.
        dtype: of the weights; `auto` is float32 on a processor and the model's own elsewhere.
        threads: of computation; 0 is what torch takes by itself, but on a processor one of them is left to the arena.
        max_batch: sequences that run at the same time.
        context_tokens: of prompt and completion together; None takes the model's own.
        kv_cache_mb: mebibytes for the keys and values of sequences that run; one runs whatever it takes.
        prefix_cache_mb: mebibytes for the keys and values of past prompts.
    """

    model: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    max_batch: int = 64
    context_tokens: int | None = None
    kv_cache_mb: int = 2048
    prefix_cache_mb: int = 256


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalModel:
    """Loads the model, and computes. Nothing here may run on an event loop's thread.

    Raises `EngineMissing`, `BadModel`.
    """

    def __init__(self, settings: TransformersSettings) -> None:
        hush()
        try:
            import torch
            from transformers import AttentionInterface, AutoModelForCausalLM
        except ImportError as error:
            raise EngineMissing(
                f"transformers cannot be imported: {one_line(error)}; install the extra 'policy'"
            ) from None
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        AttentionInterface.register(ATTENTION, attend_window)
        self.settings = settings
        name = settings.device
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self.device = torch.device(name)
        except RuntimeError as error:
            raise BadModel(f"device: got {name!r}: {one_line(error)}") from None
        if settings.threads:
            torch.set_num_threads(settings.threads)
        elif self.device.type == "cpu":
            torch.set_num_threads(max(1, min(torch.get_num_threads(), processors() - 1)))
        self._dtype = settings.dtype
        if settings.dtype == "auto" and self.device.type == "cpu":
            self._dtype = "float32"
        self.tokenizer = ChatTokenizer(settings.model)
        # The window masks by itself; a mask in the final form is left alone.
        self._seen_to = torch.zeros((1, 1, 1, 1), device=self.device)
        self._auto = AutoModelForCausalLM
        self._base = self._load(settings.model)
        self._peft: Any = None
        self._active: str = BASE
        self._paths: dict[str, str] = {}
        self._contents: dict[str, dict[str, str]] = {}
        """By version: the hash of every file as it was published."""
        self._loaded: OrderedDict[str, Any] = OrderedDict()
        """By version: the name under which peft has it, or a whole model."""
        self._names = 0
        self.name = describe_model(settings.model)
        config = self._base.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.shape = Shape(layers=config.num_hidden_layers, heads=heads, size=size)
        self.dtype = self._base.dtype
        own = int(getattr(config, "max_position_embeddings", 0) or 2048)
        self.context_tokens = min(own, settings.context_tokens or own)
        ends = getattr(self._base.generation_config, "eos_token_id", None)
        listed = [ends] if isinstance(ends, int) else list(ends or ())
        self.ends = frozenset([*listed, int(self.tokenizer.inner.eos_token_id)])
        self.vocabulary_size = self._check()

    def _load(self, folder: str) -> Any:
        check_folder(folder)
        try:
            model = self._auto.from_pretrained(folder, dtype=self._dtype, local_files_only=True)
            return model.to(self.device).eval()
        except Exception as error:
            raise BadModel(f"model {folder!r}: transformers cannot load it: {one_line(error)}") from None

    def _check(self) -> int:
        """Compare a pass through `Window` with one of the model's own, and return the number of logits."""
        import torch

        ids = torch.tensor([PROBE], device=self.device)
        try:
            with torch.inference_mode():
                own = self._base(input_ids=ids, use_cache=False).logits[0, -1].float()
                rows = Rows(self.shape, dtype=self.dtype, device=self.device)
                rows.reserve(1, len(PROBE), used=0)
                self._base.set_attn_implementation(ATTENTION)
                self.forward(BASE, rows, [Group(0, [PROBE[:2]], [0])])
                ours = self.forward(BASE, rows, [Group(0, [PROBE[2:]], [2])])[0]
            apart = float((own - ours).abs().max() / own.abs().max().clamp(min=1e-6))
        except Exception as error:
            raise BadModel(f"model {self.name}: its attention is not supported: {one_line(error)}") from None
        if not apart <= PROBE_TOLERANCE:
            raise BadModel(f"model {self.name}: its kind of attention is not supported by transformers here")
        return int(own.shape[-1])

    def forward(self, version: str, rows: Rows, groups: Sequence[Group]) -> Any:
        """Compute the groups' tokens in one pass, and return the logits [rows, vocabulary] after each row's last.

        Args:
            version: the adapter's.
            rows: holds what came before.
            groups: which rows, in the order of the logits.
        """
        window = Window(rows, groups)
        out = self._module(version)(
            input_ids=window.ids,
            attention_mask=self._seen_to,
            position_ids=window.places,
            past_key_values=window,
            use_cache=True,
            logits_to_keep=window.ends,
        )
        return out.logits[0].float()

    def publish(self, version: str, path: str) -> None:
        """Take an adapter version: a LoRA adapter, or a whole model with the base's tokenizer.

        Raises `UnknownAdapter` where the folder holds neither, `BadModel` where it cannot be loaded.
        """
        if version == BASE or version in self._paths:
            if self._paths.get(version) == path:
                return
            raise UnknownAdapter(f"adapter {version!r} is published already, from another folder")
        folder = Path(path)
        if not any((folder / name).is_file() for name in ("adapter_config.json", "config.json")):
            raise UnknownAdapter(
                f"adapter {version!r}: {folder} has no adapter_config.json and no config.json"
            )
        self._paths[version] = path
        try:
            self._get(version)
        except BaseException:
            del self._paths[version]
            self._contents.pop(version, None)
            raise

    def knows(self, version: str) -> bool:
        """Whether `version` was published, or is the base."""
        return version == BASE or version in self._paths

    def published(self) -> list[str]:
        """Return the versions that were published."""
        return sorted(self._paths)

    def _get(self, version: str) -> Any:
        import torch

        held = self._loaded.get(version)
        if held is None:
            # Also in the middle of a pass: tensors made for inference alone could not be switched on and off later.
            with torch.inference_mode(False):
                held = self._loaded[version] = self._load_version(version)
            # peft minds the loss of the adapter that it computes with, so that one stays.
            idle = [one for one in self._loaded if one not in (version, self._active)]
            for old in idle[: max(len(self._loaded) - MAX_LOADED, 0)]:
                dropped = self._loaded.pop(old)
                if isinstance(dropped, str):
                    self._peft.delete_adapter(dropped)
        self._loaded.move_to_end(version)
        return held

    def _load_version(self, version: str) -> Any:
        folder = self._paths[version]
        content = content_of(Path(folder))
        if content != self._contents.setdefault(version, content):  # it was put away, and is loaded again
            raise BadAdapter(f"adapter {version!r}: its files are not those that were published")
        if not (Path(folder) / "adapter_config.json").is_file():
            model = self._load(folder)
            if model.config.vocab_size != self._base.config.vocab_size:
                raise BadModel(f"adapter {version!r}: its vocabulary is not that of {self.name}")
            model.set_attn_implementation(ATTENTION)
            return model
        try:
            from peft import PeftModel
        except ImportError as error:
            raise EngineMissing(
                f"LoRA adapters need peft, which cannot be imported: {one_line(error)}"
            ) from None
        self._names += 1
        name = f"v{self._names}"  # peft allows no dots
        try:
            if self._peft is None:
                self._peft = PeftModel.from_pretrained(self._base, folder, adapter_name=name)
            else:
                self._peft.load_adapter(folder, adapter_name=name)
            self._base.eval()
        except Exception as error:
            raise BadModel(f"adapter {version!r}: peft cannot load it: {one_line(error)}") from None
        self._activate(version, name)
        return name

    def _activate(self, version: str, name: str | None) -> None:
        """Let the base's modules compute with the LoRA adapter `name`, or without any."""
        if name is None:
            self._peft.base_model.disable_adapter_layers()
        else:
            self._peft.base_model.enable_adapter_layers()
            self._peft.base_model.set_adapter(name, inference_mode=True)
        self._active = version

    def _module(self, version: str) -> Any:
        """Return the module that computes as `version`."""
        held = None if version == BASE else self._get(version)
        if held is not None and not isinstance(held, str):
            return held
        if self._peft is not None and self._active != version:
            self._activate(version, held)
        return self._base

    def close(self) -> None:
        """Let go of the weights."""
        import gc

        import torch

        self._loaded.clear()
        self._peft = self._base = None
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
