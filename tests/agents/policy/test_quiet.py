"""What the libraries of models may say, in processes of their own: they read the environment when imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.policy.quiet import ENVIRONMENT

ROOT = Path(__file__).parents[3]
LOAD = """
import logging, warnings
from agents.policy.local_model import LocalModel, TransformersSettings
from agents.policy.presets import tiny_folder
LocalModel(TransformersSettings(str(tiny_folder()), device="cpu", threads=1))
import torch
from tqdm.auto import tqdm
list(tqdm(range(3), desc="a bar"))
logging.getLogger("transformers.utils").warning("a warning")
logging.getLogger("transformers.utils").error("an error")
warnings.warn_explicit("of torch", UserWarning, "torch/x.py", 1, module="torch.x")
warnings.warn_explicit("of torchlike", UserWarning, "torchlike.py", 1, module="torchlike")
"""


def said(**environment: str) -> str:
    """Return what a process that loads a model says on stderr."""
    clean = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_errors_are_said_alone() -> None:
    first, *rest = said().splitlines()
    assert "an error" in first
    assert rest == ["torchlike.py:1: UserWarning: of torchlike"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TRANSFORMERS_VERBOSITY", "warning", "a warning"),
        ("TQDM_DISABLE", "", "a bar"),
        ("PYTHONWARNINGS", "default", "of torch\n"),
    ],
)
def test_whoever_asks_for_more_gets_it(name: str, value: str, words: str) -> None:
    assert words in said(**{name: value})
