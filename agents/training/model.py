"""The model that is trained: loaded with a LoRA adapter or with all weights free, and written as engines take it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from agents.errors import BadAdapter, BadLearner, BadModel, CheckpointFailed, EngineMissing
from agents.policy.adapter_files import LORA_CONFIG, MODEL_CONFIG, check_files
from agents.policy.chat import ChatTokenizer, check_folder, describe_model, one_line
from agents.policy.constraints import Guides
from agents.policy.quiet import hush
from agents.policy.weights import folder_tensors
from agents.training.batches import Asked, Encoder, passes
from agents.training.scoring import score
from agents.training.settings import LearnerSettings

BESIDE = (".json", ".jinja", ".model", ".txt")
"""Endings of a model's files that are kept beside new weights: the tokenizer and how the model is prompted."""
PROBE = (3, 1, 4, 1, 5)
PROBE_TOLERANCE = 0.02


class TrainedModel:
    """The weights that are trained, and what surrounds them.

    Args:
        folder: of the model.
        settings: what is trained, and where.
        adapter: a version's folder to go on from: a LoRA adapter, or a whole model; None begins at the model itself.
        seed: of what a fresh adapter is initialised with.

    Raises `EngineMissing`, `BadModel`, `BadAdapter` or `BadLearner`.
    """

    def __init__(self, folder: Path, *, settings: LearnerSettings, adapter: Path | None, seed: int) -> None:
        hush()
        try:
            import torch
            import transformers
        except ImportError as error:
            raise EngineMissing(
                f"training needs torch and transformers: {one_line(error)}; install the extra 'policy'"
            ) from None
        transformers.utils.logging.disable_progress_bar()
        self.folder = folder
        self.settings = settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self.device = _device(settings.device)
        check_folder(folder)
        self.base = describe_model(folder)
        kind = _kind(adapter, base=folder)
        if kind is not None and (kind == "lora") != (settings.weights == "lora"):
            asked = "a LoRA adapter was" if settings.weights == "lora" else "all weights were"
            raise BadLearner(f"learner weights: {asked} asked for, {adapter} is the other kind")
        half = settings.dtype == "bfloat16" or (settings.dtype == "auto" and self.device.type == "cuda")
        self.half = half
        # What is frozen may be kept small; what is trained must not lose its small steps.
        dtype = torch.bfloat16 if half and settings.weights == "lora" else torch.float32
        source = adapter if kind == "full" and adapter is not None else folder
        self.module = self._load(source, dtype)
        self.plain = self.module
        """Without peft around it."""
        tokenizer = ChatTokenizer(folder).inner
        size = int(self.module.get_output_embeddings().weight.shape[0])
        self.encoder = Encoder(Guides(tokenizer, vocabulary_size=size), size)
        self._still()
        self._check()
        if settings.weights == "lora":
            self.module = self._with_lora(adapter if kind == "lora" else None, seed)
        self.trained: dict[str, Any] = {
            name: one for name, one in self.module.named_parameters() if one.requires_grad
        }
        if settings.checkpointing:
            self.plain.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            self.module.train()
        else:
            self.module.eval()

    def _load(self, folder: Path, dtype: Any) -> Any:
        from transformers import AutoModelForCausalLM

        try:
            model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=dtype, local_files_only=True)
            return model.to(self.device)
        except Exception as error:
            raise BadModel(f"model {str(folder)!r}: transformers cannot load it: {one_line(error)}") from None

    def _still(self) -> None:
        """Take dropout out: the sampler had none."""
        import torch

        for module in self.module.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0

    def _check(self) -> None:
        """Compare a tree of two branches with the same tokens in rows of their own."""
        import torch

        decisions = [
            self.encoder.decide(Asked(PROBE[:3], tail, None, "", 1.0, 1.0), None)
            for tail in (PROBE[3:], PROBE[:2])
        ]
        try:
            (one,) = passes(decisions, max_tokens=64, max_decisions=8)
            with torch.no_grad():
                ours = score(self.module, one, device=self.device, precision=self.precision()).rest
                rows = []
                for index in one.decisions:
                    path = decisions[index].path
                    ids = torch.tensor([path], device=self.device)
                    with self.precision():
                        logits = self.module(input_ids=ids, use_cache=False).logits[0, 2:4]
                    rows.append(torch.log_softmax(logits.float(), -1))
                apart = float((torch.cat(rows) - ours).abs().max())
        except Exception as error:
            raise BadModel(f"model {self.base}: its attention is not supported: {one_line(error)}") from None
        if not apart <= PROBE_TOLERANCE * (10 if self.half else 1):
            raise BadModel(f"model {self.base}: its kind of attention is not supported for training here")

    def _with_lora(self, adapter: Path | None, seed: int) -> Any:
        import torch

        try:
            from peft import LoraConfig, PeftModel, get_peft_model
        except ImportError as error:
            raise EngineMissing(f"LoRA needs peft, which cannot be imported: {one_line(error)}") from None
        rank = self.settings.rank
        try:
            if adapter is not None:
                made = PeftModel.from_pretrained(self.module, str(adapter), is_trainable=True)
                found = made.peft_config["default"].r
                if found != rank:
                    raise BadAdapter(f"{adapter}: its rank is {found}, the learner's is {rank}")
            else:
                config = LoraConfig(
                    r=rank,
                    lora_alpha=self.settings.alpha,
                    lora_dropout=0.0,
                    bias="none",
                    target_modules="all-linear",
                    task_type="CAUSAL_LM",
                )
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed)
                    made = get_peft_model(self.module, config)
        except (BadAdapter, MemoryError):
            raise
        except Exception as error:
            raise BadAdapter(
                f"{adapter or self.base}: peft cannot make the adapter: {one_line(error)}"
            ) from None
        for one in made.parameters():
            if one.requires_grad:
                one.data = one.data.float()
        return made

    def precision(self) -> Any:
        """Return the context in which the model computes."""
        import torch

        if not self.half:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def copy(self) -> dict[str, Any]:
        """Return a copy of the weights that are trained."""
        return {name: one.detach().clone() for name, one in self.trained.items()}

    @contextmanager
    def with_weights(self, weights: dict[str, Any] | None) -> Iterator[None]:
        """Compute with other weights in place of the trained ones, without gradients; None changes nothing."""
        import torch

        if weights is None:
            yield
            return
        own = {name: one.data for name, one in self.trained.items()}
        try:
            for name, one in self.trained.items():
                one.data = weights[name]
            with torch.no_grad():
                yield
        finally:
            for name, one in self.trained.items():
                one.data = own[name]

    def save(self, folder: Path) -> None:
        """Write a LoRA adapter, or a whole model with its tokenizer, to a folder that is made.

        Raises `CheckpointFailed`.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.module.save_pretrained(str(folder))
            if self.settings.weights == "lora":
                self._name_base(folder / LORA_CONFIG)
                (folder / "README.md").unlink(missing_ok=True)  # a form that nobody filled in
                return
            for path in sorted(self.folder.iterdir()):
                wanted = path.suffix in BESIDE and not path.name.endswith(".index.json")
                if wanted and path.is_file() and not (folder / path.name).exists():
                    shutil.copyfile(path, folder / path.name)
        except Exception as error:  # safetensors has an error of its own for a full disk
            raise CheckpointFailed(
                f"{folder}: the trained weights cannot be written: {one_line(error)}"
            ) from None

    def _name_base(self, path: Path) -> None:
        # The folder of the base means nothing on another machine; its name and hash do.
        config = json.loads(path.read_text(encoding="utf-8"))
        config["base_model_name_or_path"] = self.base
        config["target_modules"] = sorted(config["target_modules"])
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _device(name: str) -> Any:
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadLearner(f"learner device: got {name!r}: {one_line(error)}") from None
    return device


def _kind(adapter: Path | None, *, base: Path) -> str | None:
    if adapter is None:
        return None
    facts = check_files(adapter, base=base)
    if facts.kind == "full":
        _check_same_shape(adapter, base)
    return facts.kind


def _check_same_shape(folder: Path, base: Path) -> None:
    try:
        ours, theirs = folder_tensors(folder), folder_tensors(base)
    except BadModel as error:
        raise BadAdapter(str(error)) from None
    for name in sorted(ours.keys() - theirs.keys()):
        if ".layers." in name:  # weights that are tied may stand in the one and not in the other
            raise BadAdapter(
                f"{folder / MODEL_CONFIG}: {name} is in no layer of {base.name}: it is another model"
            )
    for name, tensor in theirs.items():
        found = ours.get(name)
        if found is None or found.shape != tensor.shape:
            got = "missing" if found is None else list(found.shape)
            raise BadAdapter(
                f"{folder / MODEL_CONFIG}: {name} is {got}, in {base.name} it is {list(tensor.shape)}"
            )
