"""How a policy learns: the advantages, the loss and the learner, as a run's configuration states them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Rank = Literal[1, 8, 16, 32, 64, 128, 256, 320, 512]
"""Of a LoRA adapter: those that vllm takes, as `agents.policy.vllm_local.LORA_RANKS`."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AdvantageSettings(_Settings):
    """How outcomes become advantages."""

    scale: Literal["none", "group", "batch"] = Field(
        default="group",
        description="By whose standard deviation advantages are divided: nothing's, their group's, the batch's.",
    )
    baseline: Literal["group", "leave-one-out"] = Field(
        default="group", description="What is subtracted: the group's mean, or the mean of its others."
    )
    by_deal: bool = Field(
        default=True,
        description="Whether matches of the same deal are compared among themselves, where there are.",
    )
    least: int = Field(default=2, ge=2, description="Matches that a group needs to be compared by its deal.")
    failure_penalty: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="Taken from the outcome for each answer that could not be read, was not legal or not in time.",
    )
    momentum: float = Field(
        default=0.9,
        ge=0,
        lt=1,
        description="Of the running baselines, which stand in where a group has but one match.",
    )


class LossSettings(_Settings):
    """The loss of `agents.training.loss`. Coefficients are per token that was chosen."""

    clip_low: float = Field(default=0.2, gt=0, lt=1, description="How far below 1 a ratio still counts.")
    clip_high: float = Field(
        default=0.28, gt=0, le=10, allow_inf_nan=False, description="How far above 1 a ratio still counts."
    )
    dual_clip: float = Field(
        default=3.0,
        ge=0,
        allow_inf_nan=False,
        description="Bound of the ratio where the advantage is negative, above 1; 0 sets none.",
    )
    kl: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="Coefficient of the divergence from the reference.",
    )
    kl_kind: Literal["k3", "exact"] = Field(
        default="k3",
        description="The divergence: k3 estimates it from the tokens that were sampled; exact sums over what was "
        "allowed, and is k3 in free text.",
    )
    entropy: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Coefficient of the entropy, which is sought."
    )
    aggregate: Literal["token", "sequence"] = Field(
        default="token",
        description="The mean is over all tokens alike, or over trajectories and in each over its tokens.",
    )
    max_correction: float = Field(
        default=2.0,
        ge=0,
        allow_inf_nan=False,
        description="Bound of the weight that corrects for the sampler's other log-probabilities; 0 corrects nothing.",
    )


class LearnerSettings(_Settings):
    """How the learner steps."""

    weights: Literal["lora", "all"] = Field(
        default="lora", description="What is trained: a LoRA adapter, or all weights."
    )
    rank: Rank = Field(default=16, description="Of the LoRA adapter.")
    alpha: float = Field(
        default=32.0, gt=0, allow_inf_nan=False, description="Of the LoRA adapter: it weighs alpha / rank."
    )
    lr: float = Field(default=1e-4, gt=0, le=10, description="The learning rate of AdamW.")
    warmup: int = Field(
        default=0, ge=0, description="Updates over which the learning rate rises to its height."
    )
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Of AdamW.")
    betas: tuple[float, float] = Field(default=(0.9, 0.95), description="Of AdamW.")
    max_grad_norm: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="The gradient is cut to this norm; 0 leaves it."
    )
    epochs: int = Field(
        default=1, ge=1, le=100, description="How often an update goes through its trajectories."
    )
    steps: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Steps of the optimiser in an epoch; each takes its share of them.",
    )
    pass_tokens: int = Field(
        default=768,
        ge=1,
        description="Tokens of a tree of prompts, what they share counted once: with pass_trees it bounds the memory.",
    )
    pass_least: int = Field(
        default=256,
        ge=1,
        description="Tokens from which a tree takes no prompt in that shares little with it.",
    )
    pass_trees: int = Field(
        default=4, ge=1, le=4096, description="Trees that a forward pass computes side by side, at most."
    )
    pass_decisions: int = Field(default=4096, ge=1, description="Completions of one forward pass.")
    checkpointing: bool = Field(
        default=False,
        description="Whether activations are computed again instead of kept: less memory, more time.",
    )
    device: str = Field(
        default="auto", min_length=1, description="Where it computes: auto, cpu, cuda, cuda:1."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="In what it computes; what is trained is kept in float32. auto is bfloat16 on a GPU.",
    )
    threads: int = Field(default=0, ge=0, le=1024, description="Of computation; 0 leaves it to torch.")
    reference: Literal["none", "start", "moving"] = Field(
        default="none",
        description="What kl holds the policy to: nothing, the weights at the start, or those of some updates ago.",
    )
    reference_every: int = Field(
        default=30, ge=1, description="Updates after which a moving reference takes the weights of now."
    )
    average: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="How much averaged weights keep of themselves at a step; 0 keeps none.",
    )
    loss: LossSettings = Field(default=LossSettings(), description="The loss.")
