"""The shape of the tiny model: a Llama of two million parameters, as transformers and vLLM know it."""

from typing import Any

HIDDEN = 192
LAYERS = 4
HEADS = 3
"""Of 64 numbers each: processors compute wide heads nearly twice as fast as narrow ones."""
FEED_FORWARD = 512
CONTEXT_TOKENS = 1024
ROPE_THETA = 10_000.0


def make_model(tokenizer: Any, *, seed: int) -> Any:
    """Return a fresh model for `tokenizer`; the same seed gives the same weights.

    The embeddings of a word's forms start alike: an answer's bare `3` is the history's ` 3`.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=FEED_FORWARD,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HIDDEN // HEADS,
        max_position_embeddings=CONTEXT_TOKENS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        first: dict[str, int] = {}
        for token in range(len(tokenizer)):
            word = tokenizer.decode([token])
            bare = word[1:] if word[:1] in (" ", "\n") else word
            if bare and "\ufffd" not in bare:
                embedding[token] = embedding[first.setdefault(bare, token)]
    return model
