"""How policies are run: the section `[policy]` of the configuration."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_MODEL = "tiny"

Backend = Literal["transformers", "vllm", "openai"]
Mode = Literal["direct", "one", "two"]
Style = Literal["auto", "full", "compact"]


class PolicySettings(BaseModel):
    """How the player `policy` is computed, prompted and sampled. Lengths are in tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Backend = Field(
        default="transformers", description="What computes: transformers, vllm, or openai (a server)."
    )
    model: str = Field(
        default=DEFAULT_MODEL,
        min_length=1,
        description="A preset (tiny, smollm2), a folder with a model's files, or MODEL@URL for openai.",
    )
    device: str = Field(
        default="auto", min_length=1, description="Where transformers computes: auto, cpu, cuda, cuda:1."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto",
        description="Of the weights; auto is float32 on a processor, the model's own elsewhere.",
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Threads that transformers computes with; 0 leaves one processor to the arena.",
    )
    concurrency: int = Field(
        default=32, ge=1, le=4096, description="Matches with policies that are played at the same time."
    )
    max_batch: int = Field(default=64, ge=1, le=4096, description="Requests that are computed together.")
    max_wait_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds that a request waits for the model to take it; a turn's deadline may end before.",
    )
    max_queued: int = Field(
        default=1024, ge=1, description="Requests that wait for the model; more hold their matches up."
    )
    kv_cache_mb: int = Field(
        default=2048,
        ge=1,
        description="Mebibytes for the keys and values of what runs together; the rest waits (transformers).",
    )
    prefix_cache_mb: int = Field(
        default=256, ge=0, description="Mebibytes for what was computed of earlier prompts (transformers)."
    )
    context_tokens: int | None = Field(
        default=None, ge=64, description="Of a prompt and its answer together; by default the model's own."
    )
    budget_tokens: int | None = Field(
        default=None, ge=32, description="Of a prompt; by default what the context leaves beside the answer."
    )
    mode: Mode = Field(
        default="direct",
        description="direct asks for the action; one for thought and action in one reply; two in two.",
    )
    style: Style = Field(
        default="auto",
        description="Of the prompts: full, compact (for tiny models), or the preset's own (auto).",
    )
    temperature: float = Field(default=1.0, ge=0, le=10, allow_inf_nan=False, description="Of the sampling.")
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Mass of the likeliest tokens that are sampled.",
    )
    speech_tokens: int = Field(default=96, ge=1, description="A speech's bound.")
    thought_tokens: int = Field(default=160, ge=1, description="A thought's bound.")
    engine_retries: int = Field(
        default=1,
        ge=0,
        le=10,
        description="How often a request is given to the restarted model after it died.",
    )
    vllm_lora_rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] = Field(
        default=16, description="The highest rank of an adapter (vllm)."
    )
    vllm_gpu_memory: float = Field(
        default=0.9, gt=0, le=1, allow_inf_nan=False, description="Share of a GPU's memory that vllm may use."
    )
    vllm_tensor_parallel: int = Field(
        default=1, ge=1, le=64, description="GPUs over which vllm splits the model."
    )
    openai_dialect: Literal["auto", "vllm", "json_schema", "plain"] = Field(
        default="auto",
        description="How a server is told what is legal: as vLLM, by response_format, or not at all.",
    )
    openai_length_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="What the server calls the bound of an answer."
    )
    openai_key_env: str = Field(
        default="OPENAI_API_KEY", description="The environment variable that holds the key for openai."
    )
    openai_key_in_clear: bool = Field(
        default=False, description="Whether the key may be sent over plain http to another machine."
    )
    openai_tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="A folder with the tokenizer of the server's model, to count exactly; else guessed.",
    )
    openai_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds for one answer over HTTP, retries included.",
    )
    openai_attempts: int = Field(
        default=6, ge=1, le=100, description="How often an HTTP request is sent at most."
    )
    openai_publish: bool = Field(
        default=False,
        description="Whether adapters may be loaded on the server, which must see the same folders.",
    )
    openai_max_total_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Of prompts and answers in all, after which a server is asked no more; by default no bound.",
    )
    openai_prompt_price: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million prompt tokens, in any currency."
    )
    openai_cached_price: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Of a million prompt tokens that the server had cached; by default as the others.",
    )
    openai_completion_price: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million completion tokens."
    )
