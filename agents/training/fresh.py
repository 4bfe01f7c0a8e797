"""A small model with random weights, to begin training from nothing.

The shipped model learnt from scripted players and already plays small games as they do; what is to be shown to come
from self-play alone begins here.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

from agents.errors import BadLearner
from agents.policy.chat import ChatTokenizer
from agents.policy.quiet import hush

PROVENANCE = "provenance.json"


def make_fresh(folder: Path, *, tokenizer: Path, seed: int, hidden: int, layers: int) -> Path:
    """Write a fresh model to `folder`, whole or not at all, and return it; one that is there is left alone.

    Args:
        folder: made where it is missing.
        tokenizer: the folder of the model whose tokenizer it takes.
        seed: of the weights: the same seed gives the same.
        hidden, layers: its shape, a Llama's.

    Raises `BadLearner` where it cannot be written.
    """
    if (folder / PROVENANCE).is_file():
        return folder
    hush()
    from transformers.utils.logging import disable_progress_bar

    from agents.policy.pretrain.model import make_model

    disable_progress_bar()
    inner = ChatTokenizer(tokenizer).inner
    model = make_model(inner, seed=seed, hidden=hidden, layers=layers)
    told = {
        "fresh": {"seed": seed, "hidden": hidden, "layers": layers},
        "model": {"parameters": sum(one.numel() for one in model.parameters()), "vocabulary": len(inner)},
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".fresh-", dir=folder.parent))
        try:
            inner.save_pretrained(made)
            model.save_pretrained(made)
            (made / PROVENANCE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            os.replace(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise BadLearner(f"{folder}: cannot write the fresh model: {error.strerror or error}") from None
    return folder
