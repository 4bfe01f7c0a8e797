"""Small models with random weights, made for tests."""

from pathlib import Path

CORPUS = (
    "approve reject 0, 1, 2, 3, 4 success fail seat quest team vote mission leader merlin assassin",
    "I trust seat 2. We should not send seat 3 on the quest, seat 4 failed the last one.",
    "werewolf seer doctor villager night day pass bet call fold card king queen jack",
    "You play the game. It is your turn: answer with one of the options, and nothing else.",
    'Action: {"action": ["0", "1"]} thought because the others are not to be trusted',
)

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def save_model(
    folder: Path, *, seed: int = 0, layers: int = 2, kv_heads: int = 2, context: int = 4096
) -> Path:
    """Save a random Llama with head size 32 and a byte-level tokenizer of 400 tokens, and return its folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS * 3,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=kv_heads,
        head_dim=32,
        max_position_embeddings=context,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).eval().save_pretrained(folder)
    return folder


def save_lora(base: Path, folder: Path, *, seed: int = 1, rank: int = 8) -> Path:
    """Save a random LoRA adapter for the model in `base`, and return its folder."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    config = LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=["q_proj", "v_proj"], init_lora_weights=False
    )
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(str(folder))
    return folder
