"""The shape of the tiny model: a Llama of two million parameters, as transformers and vLLM know it."""

from typing import Any

HIDDEN = 192
LAYERS = 4
HEADS = 3
"""Of 64 numbers each: processors compute wide heads nearly twice as fast as narrow ones."""
FEED_FORWARD = 512
CONTEXT_TOKENS = 1024
ROPE_THETA = 10_000.0


def make_model(tokenizer: Any, *, seed: int, hidden: int = HIDDEN, layers: int = LAYERS) -> Any:
    """Return a fresh model for `tokenizer`; the same seed gives the same weights.

    Args:
        tokenizer: of transformers.
        seed: of the weights.
        hidden: width, a multiple of 64, or of 32; heads have so many numbers.
        layers: how many.

    The embeddings of a word's forms start alike: an answer's bare `3` is the history's ` 3`.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    head = HIDDEN // HEADS if hidden % (HIDDEN // HEADS) == 0 else 32
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=FEED_FORWARD * hidden // HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=hidden // head,
        num_key_value_heads=hidden // head,
        head_dim=head,
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
