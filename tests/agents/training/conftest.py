"""Models with random weights for the tests of training, made once."""

from pathlib import Path

import pytest

from tests.agents.policy.models import save_lora, save_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small Llama."""
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def grouped_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small Llama whose heads share keys and values."""
    return save_model(tmp_path_factory.mktemp("grouped"), seed=5, kv_heads=1)


@pytest.fixture(scope="session")
def lora_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a LoRA adapter for the model in `model_folder`."""
    return save_lora(model_folder, tmp_path_factory.mktemp("lora") / "a")
