"""The model that is trained: what of it is trained, that it computes right before anything is, and what is written."""

import json
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadAdapter, BadLearner, BadModel, CheckpointFailed, EngineMissing
from agents.policy.adapter_files import check_files
from agents.policy.chat import describe_model
from agents.policy.weights import folder_tensors
from agents.training.model import TrainedModel
from agents.training.settings import LearnerSettings
from tests.agents.policy.models import save_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def load(folder: Path, *, adapter: Path | None = None, seed: int = 0, **changes: Any) -> TrainedModel:
    given: dict[str, Any] = {"weights": "all", "device": "cpu", "threads": 1, "rank": 8}
    settings = LearnerSettings(**{**given, **changes})
    return TrainedModel(folder, settings=settings, adapter=adapter, seed=seed)


def logits(model: TrainedModel) -> Any:
    with torch.no_grad(), model.precision():
        return model.module(input_ids=IDS, use_cache=False).logits


def shake(model: TrainedModel, *, seed: int = 4) -> None:
    """Move every weight that is trained."""
    rng = torch.Generator().manual_seed(seed)
    for one in model.trained.values():
        one.data += 0.05 * torch.randn(one.shape, generator=rng)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def copied(folder: Path, to: Path, **config: Any) -> Path:
    """Return a copy of a model with some of its configuration changed."""
    shutil.copytree(folder, to)
    path = to / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return to


# What is trained


def test_all_weights_are_trained_or_the_adapter_alone(model_folder: Path) -> None:
    whole = load(model_folder)
    assert whole.trained.keys() == dict(whole.module.named_parameters()).keys()
    assert whole.plain is whole.module and whole.base == describe_model(model_folder)
    lora = load(model_folder, weights="lora")
    assert lora.trained and all(".lora_" in name for name in lora.trained)
    ours = {name for name, one in lora.module.named_parameters() if one.requires_grad}
    assert lora.trained.keys() == ours and lora.plain is not lora.module


@pytest.mark.parametrize("rank", [8, 16])
def test_an_adapter_has_two_thin_matrices_beside_every_linear_layer(model_folder: Path, rank: int) -> None:
    model = load(model_folder, weights="lora", rank=rank)
    tensors = folder_tensors(model_folder)
    linear = [
        tensor.shape for name, tensor in tensors.items() if ".layers." in name and len(tensor.shape) == 2
    ]
    assert len(linear) == 2 * 7
    assert sum(one.numel() for one in model.trained.values()) == sum(rank * sum(shape) for shape in linear)


def test_a_fresh_adapter_changes_nothing_yet_and_follows_from_its_seed(model_folder: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, again, other = (load(model_folder, weights="lora", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before), "the chance of others is left alone"
    assert same(one.trained, again.trained) and not same(one.trained, other.trained)
    assert torch.allclose(logits(one), logits(load(model_folder)), atol=1e-6)
    for name, weight in one.trained.items():
        assert weight.any() == ("lora_A" in name)


def test_gradients_reach_what_is_trained_and_nothing_else(model_folder: Path) -> None:
    for kind in ("all", "lora"):
        model = load(model_folder, weights=kind)
        shake(model)
        model.module(input_ids=IDS, use_cache=False).logits.square().mean().backward()
        reached = {name for name, one in model.module.named_parameters() if one.grad is not None}
        assert reached == model.trained.keys()


def test_nothing_is_dropped_out(model_folder: Path, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = copied(model_folder, tmp_path / "llama", attention_dropout=0.5)
    model = load(folder, checkpointing=True)
    assert model.module.training
    assert torch.equal(logits(model), logits(model))
    shutil.copytree(
        model_folder, tmp_path / "gpt", ignore=shutil.ignore_patterns("*.safetensors", "config.json")
    )
    size = int(load(model_folder).module.get_output_embeddings().weight.shape[0])
    config = GPT2Config(vocab_size=size, n_embd=32, n_layer=1, n_head=2, n_positions=64)
    assert config.resid_pdrop > 0
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt")
    dropping = load(tmp_path / "gpt", checkpointing=True)
    assert torch.equal(logits(dropping), logits(dropping))


def test_a_model_that_keeps_its_activations_is_not_in_training_mode(model_folder: Path) -> None:
    assert not load(model_folder).module.training
    assert load(model_folder, weights="lora", checkpointing=True).module.training


@pytest.mark.parametrize(("kind", "frozen"), [("all", torch.float32), ("lora", torch.bfloat16)])
def test_in_half_precision_what_is_frozen_is_small(model_folder: Path, kind: str, frozen: Any) -> None:
    half = load(model_folder, weights=kind, dtype="bfloat16")
    assert half.half and {one.dtype for one in half.trained.values()} == {torch.float32}
    others = [one for name, one in half.module.named_parameters() if name not in half.trained]
    assert {one.dtype for one in others} <= {frozen}
    with half.precision():
        assert torch.is_autocast_enabled("cpu")
    whole = load(model_folder, weights=kind)
    assert not whole.half and isinstance(whole.precision(), nullcontext)
    assert 0 < (logits(half).float() - logits(whole)).abs().mean() < 0.1


# Other weights in place of the trained ones


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_a_copy_is_apart_from_what_is_trained(model_folder: Path, kind: str) -> None:
    model = load(model_folder, weights=kind)
    kept = model.copy()
    assert same(kept, model.trained) and not any(one.requires_grad for one in kept.values())
    shake(model)
    assert not same(kept, model.trained)


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_other_weights_compute_for_a_while_and_the_own_come_back(model_folder: Path, kind: str) -> None:
    model = load(model_folder, weights=kind)
    start, before = model.copy(), logits(model)
    shake(model)
    own, after = model.copy(), logits(model)
    with model.with_weights(start):
        assert torch.equal(logits(model), before)
    assert same(own, model.trained) and torch.equal(logits(model), after)
    assert not torch.equal(before, after)
    with pytest.raises(ZeroDivisionError), model.with_weights(start):
        raise ZeroDivisionError
    assert same(own, model.trained)


def test_no_other_weights_are_the_own(model_folder: Path) -> None:
    model = load(model_folder)
    before = logits(model)
    with model.with_weights(None):
        assert torch.equal(logits(model), before)


def test_weights_that_are_not_all_there_leave_the_own(model_folder: Path) -> None:
    model = load(model_folder)
    start = model.copy()
    part = dict(list({name: one + 1 for name, one in start.items()}.items())[:3])
    with pytest.raises(KeyError), model.with_weights(part):
        raise AssertionError("nothing is computed with half of the weights")
    assert same(start, model.trained)


# What is written


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_what_was_saved_is_gone_on_from(model_folder: Path, tmp_path: Path, kind: str) -> None:
    model = load(model_folder, weights=kind)
    shake(model)
    folder = tmp_path / "made" / "here"
    model.save(folder)
    facts = check_files(folder, base=model_folder)
    assert facts.kind == ("full" if kind == "all" else "lora")
    again = load(model_folder, weights=kind, adapter=folder, seed=9)
    assert same(model.trained, again.trained) and torch.equal(logits(model), logits(again))


def test_a_whole_model_is_saved_with_how_it_is_prompted(model_folder: Path, tmp_path: Path) -> None:
    source = copied(model_folder, tmp_path / "source", mine="yes")
    (source / "notes.txt").write_text("kept")
    (source / "secret.bin").write_bytes(b"left")
    (source / "model.safetensors.index.json").write_text("{}")
    model = load(model_folder)
    model.folder = source
    model.save(tmp_path / "saved")
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "notes.txt",
    } <= names
    assert not names & {"secret.bin", "model.safetensors.index.json"}
    assert (tmp_path / "saved" / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()
    assert "mine" not in json.loads((tmp_path / "saved" / "config.json").read_text()), (
        "its own are not replaced"
    )


def test_an_adapter_names_its_base_by_name_and_hash(model_folder: Path, tmp_path: Path) -> None:
    model = load(model_folder, weights="lora")
    for name in ("a", "b"):
        model.save(tmp_path / name)
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == model.base == describe_model(model_folder)
    assert config["target_modules"] == sorted(config["target_modules"])
    assert (config["r"], config["lora_alpha"]) == (8, 32.0)
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), (
            "the same weights, the same files"
        )


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_what_cannot_be_written_is_said_in_one_line(model_folder: Path, tmp_path: Path, kind: str) -> None:
    model = load(model_folder, weights=kind)
    before = model.copy()
    (tmp_path / "file").write_text("")
    with pytest.raises(
        CheckpointFailed, match=r"^[^\n]*here: the trained weights cannot be written: [^\n]+$"
    ):
        model.save(tmp_path / "file" / "here")
    (tmp_path / "taken" / ("model.safetensors" if kind == "all" else "adapter_model.safetensors")).mkdir(
        parents=True
    )
    with pytest.raises(
        CheckpointFailed, match=r"^[^\n]*taken: the trained weights cannot be written: [^\n]+$"
    ):
        model.save(tmp_path / "taken")
    assert same(before, model.trained)


# What cannot be trained


def test_a_model_whose_files_are_damaged_is_refused_in_one_line(model_folder: Path, tmp_path: Path) -> None:
    folder = copied(model_folder, tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(BadModel, match=r"^model '[^\n]*model': transformers cannot load it: [^\n]+$"):
        load(folder)
    with pytest.raises(BadModel, match=r"^model '[^\n]*none': no such folder$"):
        load(tmp_path / "none")


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_a_model_whose_attention_looks_elsewhere_is_refused(
    model_folder: Path, tmp_path: Path, kind: str
) -> None:
    folder = copied(
        model_folder,
        tmp_path / "model",
        model_type="mistral",
        architectures=["MistralForCausalLM"],
        sliding_window=2,
    )
    with pytest.raises(BadModel) as error:
        load(folder, weights=kind)
    assert str(error.value).startswith(f"model {describe_model(folder)}: its ")
    assert "attention is not supported" in str(error.value) and "\n" not in str(error.value)


def test_an_adapter_of_another_kind_is_refused_whichever_was_asked_for(
    model_folder: Path, lora_folder: Path
) -> None:
    with pytest.raises(BadLearner, match=r"^learner weights: a LoRA adapter \w+ asked for, [^\n]+$") as error:
        load(model_folder, weights="lora", adapter=model_folder)
    assert str(error.value).endswith(f", {model_folder} is the other kind")
    with pytest.raises(BadLearner, match=r"^learner weights: all weights were asked for, "):
        load(model_folder, adapter=lora_folder)


def test_a_folder_that_is_no_adapter_is_refused_in_one_line(model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadAdapter, match=r"^[^\n]*none: no folder; [^\n]+$"):
        load(model_folder, adapter=tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadAdapter, match=r"^[^\n]*empty: it holds no [^\n]+$"):
        load(model_folder, adapter=tmp_path / "empty")


def test_a_whole_model_of_another_shape_is_refused_by_the_first_tensor_that_differs(
    model_folder: Path, grouped_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadAdapter) as error:
        load(model_folder, adapter=grouped_folder)
    assert str(error.value) == (
        f"{grouped_folder / 'config.json'}: model.layers.0.self_attn.k_proj.weight is [32, 64], "
        f"in {model_folder.name} it is [64, 64]"
    )
    deeper = save_model(tmp_path / "deeper", layers=3)
    with pytest.raises(BadAdapter) as error:
        load(model_folder, adapter=deeper)
    assert str(error.value) == (
        f"{deeper / 'config.json'}: model.layers.2.input_layernorm.weight is in no layer of {model_folder.name}: "
        "it is another model"
    )
    damaged = copied(model_folder, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(BadAdapter, match=r"^[^\n]+$"):
        load(model_folder, adapter=damaged)


def test_an_adapter_of_another_rank_is_refused_in_one_line(model_folder: Path, lora_folder: Path) -> None:
    with pytest.raises(BadAdapter) as error:
        load(model_folder, weights="lora", rank=32, adapter=lora_folder)
    assert str(error.value) == f"{lora_folder}: its rank is 8, the learner's is 32"


@pytest.mark.parametrize("name", ["nowhere", "cuda:99", "meta:x"])
def test_a_device_that_is_not_there_is_refused_in_one_line(model_folder: Path, name: str) -> None:
    with pytest.raises(BadLearner) as error:
        load(model_folder, device=name)
    assert str(error.value).startswith(f"learner device: got {name!r}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("missing", "kind", "said"),
    [
        ("torch", "all", "training needs torch and transformers: .*; install the extra 'policy'"),
        ("transformers", "all", "training needs torch and transformers: .*; install the extra 'policy'"),
        ("peft", "lora", "LoRA needs peft, which cannot be imported: "),
    ],
)
def test_what_is_not_installed_is_said(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str, kind: str, said: str
) -> None:
    monkeypatch.setattr("agents.training.model.hush", lambda: None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EngineMissing, match=rf"^{said}"):
        load(model_folder, weights=kind)


def test_as_many_threads_compute_as_are_asked_for(model_folder: Path) -> None:
    threads = torch.get_num_threads()
    try:
        load(model_folder, threads=2)
        assert torch.get_num_threads() == 2
        load(model_folder, threads=0)
        assert torch.get_num_threads() == 2, "0 leaves it as it is"
    finally:
        torch.set_num_threads(threads)
