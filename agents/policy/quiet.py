"""What the libraries of models say on stderr: errors alone, unless the environment asks for more."""

import logging
import os
import sys
import warnings

LIBRARIES = ("torch", "transformers", "peft", "huggingface_hub")

ENVIRONMENT = {
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TQDM_DISABLE": "1",
}
"""Set where the user has not; read by the libraries when they are imported, in the processes that they start too."""


def hush() -> None:
    """Keep warnings and progress bars of `LIBRARIES` off stderr. Call it before they are imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        for library in LIBRARIES:
            warnings.filterwarnings("ignore", module=rf"{library}(\.|$)")


def hush_vllm() -> None:
    """Hold vLLM to `VLLM_LOGGING_LEVEL` where that is ERROR: it warns before it has read that variable."""
    if os.environ.get("VLLM_LOGGING_LEVEL") == "ERROR" and not os.environ.get("VLLM_LOGGING_CONFIG_PATH"):
        logging.getLogger("vllm").setLevel(logging.ERROR)
