"""The shape of the tiny model: a Llama of two million parameters, as transformers and vLLM know it."""

from typing import Any

from agents.policy.pretrain.words import FORMS

HIDDEN = 192
LAYERS = 4
HEADS = 3
"""Of 64 numbers each: processors compute wide heads nearly twice as fast as narrow ones."""
FEED_FORWARD = 512
CONTEXT_TOKENS = 1024
ROPE_THETA = 10_000.0


def make_model(tokenizer: Any, *, seed: int) -> Any:
    """Return a fresh model for `tokenizer`; the same seed gives the same weights."""
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
        return LlamaForCausalLM(config)


class SharedEmbedding:
    """A vocabulary in which the forms of a word are one word: what is learned of ` 3` holds for a bare `3`.

    A token's embedding is that of its word and that of its form (bare, after a space, after a line end), added. It is
    so while the model is trained; `write` then gives the model the sums, as the ordinary embedding that it has.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        import torch

        start = model.get_input_embeddings().weight.detach()
        words: dict[str, int] = {}
        word_of, form_of = [], []
        for token in range(len(tokenizer)):
            text = tokenizer.decode([token])
            form = FORMS.index(text[0]) if len(text) > 1 and text[0] in FORMS else 0
            word = text[1:] if form else text
            if "\ufffd" in word:
                word = f"byte of token {token}"
            word_of.append(words.setdefault(word, len(words)))
            form_of.append(form)
        self._model = model
        self._word_of, self._form_of = torch.tensor(word_of), torch.tensor(form_of)
        self.words = torch.nn.Parameter(start[: len(words)].clone())
        self.forms = torch.nn.Parameter(start[len(words) :][: len(FORMS)].clone())

    def weight(self) -> Any:
        """Return the embedding of each token: (vocabulary, hidden)."""
        return self.words[self._word_of] + self.forms[self._form_of]

    def write(self) -> None:
        """Give the model the embedding as it is now."""
        self._model.get_input_embeddings().weight.data.copy_(self.weight().detach())
