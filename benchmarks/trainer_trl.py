"""The trainer beside TRL's GRPO: tokens per second on the same model, prompts, completions and advantages.

The completions are what the embedded model wrote in matches against itself; beside them stand prompts that have
nothing in common, where laying them out as a tree gains nothing. Both sides compute the same loss (the mean over all
tokens, no reference, no masks: TRL knows none) and step AdamW once; that the norm of the first gradient is the same
shows that it is the same work. TRL gets the completions ready, padded as it pads them itself; ours begin with the
trajectories. One more line is ours with the masks of the constraints, as it trains for good.

Both run in one process on one thread and take turns, step by step; time is CPU time on a processor, else of the
clock. TRL is no dependency: pip install -e '.[peers]', or into a folder of its own that PYTHONPATH names last.
"""

import argparse
import asyncio
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.base import Agent, Seat
from agents.match import play
from agents.policy.agent import GenerationSettings, PolicyAgent
from agents.policy.batcher import Batcher
from agents.policy.local_model import TransformersSettings
from agents.policy.presets import tiny_folder
from agents.policy.transformers_engine import TransformersEngine
from agents.training.learner import Learner
from agents.training.settings import LearnerSettings, LossSettings
from agents.training.trajectories import Step, Trajectory, harvest
from arena.spread import Spread
from benchmarks._measure import machine, positive, say_missing, table, verdict
from games.referee import Entry, Referee
from games.registry import load_game
from replays.record import Footer, Header, Record, SeatInfo

OURS, MASKED, PEER = "ours", "ours, with the masks", "TRL"
TARGET = 1.0
LR = 1e-6
RANK = 16
PROMPT, COMPLETION = 300, 24
"""Tokens of the prompts that share nothing, and of their completions."""


@dataclass(frozen=True)
class Batch:
    """What one step learns from: trajectories, and their steps' advantages."""

    name: str
    trajectories: list[Trajectory]
    advantages: list[list[float]]

    @property
    def steps(self) -> list[Step]:
        return [step for one in self.trajectories for step in one.steps]

    @property
    def tokens(self) -> int:
        return sum(len(step.prompt_ids) + len(step.token_ids) for step in self.steps)


def matches(game: str, count: int, *, seed: int, device: str, most: int) -> list[Record]:
    """Return records of matches of the embedded model against itself, until they have `most` completions."""
    rules = load_game(game)

    async def one(batcher: Batcher, number: int) -> Record:
        state = rules.new(seed=seed + number)
        playing = GenerationSettings(style="compact", budget_tokens=384, speech_tokens=24)
        agents: list[Agent] = [
            PolicyAgent(
                Seat(rules, state.seats, state.options, seat, 1000 * number + seat),
                batcher=batcher,
                playing=playing,
                match=f"{game}-{number}",
            )
            for seat in range(state.seats)
        ]
        options = state.options.model_dump(mode="json")
        header = Header(
            game, rules.version, options, seed + number, (SeatInfo("learner", "policy"),) * state.seats, 2
        )
        entries: list[Entry] = []
        result = await play(Referee(state), agents, emit=entries.extend, deadline_s=3600)
        return Record(header, entries, footer=Footer(result.outcome, result.ended, result.counts))

    async def inside() -> list[Record]:
        engine = TransformersEngine(TransformersSettings(str(tiny_folder()), device=device, threads=1))
        await engine.start()
        batcher = Batcher(engine, max_wait_s=3600)
        try:
            records: list[Record] = []
            while len(records) < count and _completions(records) < most:
                records.append(await one(batcher, len(records)))
            return records
        finally:
            await batcher.close()
            await engine.close()

    return asyncio.run(inside())


def played(game: str, count: int, *, seed: int, device: str, most: int) -> Batch:
    """Return a batch from matches, of at most `most` completions, with random advantages: none is passed over."""
    rng = random.Random(seed)
    records = matches(game, count, seed=seed, device=device, most=most)
    kept: list[Trajectory] = []
    left = most
    for one in (one for record in records for one in harvest(record)):
        if left > 0:
            kept.append(replace(one, steps=one.steps[:left]))
            left -= len(kept[-1].steps)
    advantages = [[rng.gauss(0, 1)] * len(one.steps) for one in kept]
    return Batch(game, kept, advantages)


def _completions(records: Sequence[Record]) -> int:
    return sum(len(one.steps) for record in records for one in harvest(record))


def unlike(count: int, *, seed: int) -> Batch:
    """Return a batch of random tokens, in which no prompt begins as another does."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        prompt = (20 + number % 400, *(rng.randrange(20, 420) for _ in range(PROMPT - 1)))
        completion = tuple(rng.randrange(20, 420) for _ in range(COMPLETION))
        step = Step(0, 0, "action", prompt, completion, (-1.0,) * COMPLETION)
        made.append(
            Trajectory(f"{number}", "none", "", 1, "", 0, "one", "one", "learner", "base", (step,), 0.0)
        )
    advantages = [[rng.gauss(0, 1)] for _ in made]
    return Batch("prompts that share nothing", made, advantages)


def unmasked(batch: Batch) -> list[Trajectory]:
    """Return a batch's trajectories as if they had been written freely."""
    return [
        replace(one, steps=tuple(replace(step, constraint=None) for step in one.steps))
        for one in batch.trajectories
    ]


def our_step(batch: Batch, flags: argparse.Namespace, *, masks: bool) -> Callable[[], float]:
    """Return a function that makes one update and returns the norm of its gradient."""
    settings = LearnerSettings(
        weights=flags.weights,
        rank=RANK,
        alpha=RANK,
        lr=LR,
        max_grad_norm=0.0,
        pass_tokens=flags.pass_tokens,
        device=flags.device,
        dtype="float32",
        threads=1,
        loss=LossSettings(max_correction=0.0),
    )
    learner = Learner(tiny_folder(), settings=settings)
    given = batch.trajectories if masks else unmasked(batch)
    return lambda: learner.update(given, batch.advantages).values["grad_norm"]


def padded(batch: Batch, *, pad: int, device: Any) -> dict[str, Any]:
    """Return a batch as TRL has it: prompts padded on the left and completions on the right, all to the longest."""
    import torch

    steps = batch.steps
    flat = [value for row in batch.advantages for value in row]
    wide = max(len(step.prompt_ids) for step in steps)
    long = max(len(step.token_ids) for step in steps)
    prompts = torch.full((len(steps), wide), pad)
    prompt_mask = torch.zeros_like(prompts)
    completions = torch.full((len(steps), long), pad)
    completion_mask = torch.zeros_like(completions)
    for row, step in enumerate(steps):
        prompts[row, wide - len(step.prompt_ids) :] = torch.tensor(step.prompt_ids)
        prompt_mask[row, wide - len(step.prompt_ids) :] = 1
        completions[row, : len(step.token_ids)] = torch.tensor(step.token_ids)
        completion_mask[row, : len(step.token_ids)] = 1
    made = {
        "prompt_ids": prompts,
        "prompt_mask": prompt_mask,
        "completion_ids": completions,
        "completion_mask": completion_mask,
        "advantages": torch.tensor(flat),
        "num_items_in_batch": completion_mask.sum(),
    }
    return {name: value.to(device) for name, value in made.items()}


def peer_steps(
    batch: Batch, flags: argparse.Namespace, between: Callable[[], None], clock: Callable[[], float]
) -> tuple[list[float], float]:
    """Let TRL make its steps, call `between` after each, and return their seconds and the first gradient's norm."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions of engines that are not used here
        import pyarrow
        from datasets import Dataset
        from datasets.table import InMemoryTable
        from trl import GRPOConfig, GRPOTrainer

    seconds: list[float] = []
    began = [0.0]

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            began[0] = clock()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds.append(clock() - began[0])
            between()

    class Trainer(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            return {name: value.clone() for name, value in ready.items()}

    tokenizer = AutoTokenizer.from_pretrained(str(tiny_folder()), local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(str(tiny_folder()), dtype=torch.float32)
    parts = len(batch.steps) // flags.batch
    asked = ["a"] * (len(batch.steps) * (flags.rounds + 1))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=flags.batch,
            gradient_accumulation_steps=parts,
            steps_per_generation=parts,
            num_generations=flags.batch,
            max_completion_length=max(len(step.token_ids) for step in batch.steps),
            max_steps=flags.rounds + 1,
            learning_rate=LR,
            lr_scheduler_type="constant",
            max_grad_norm=1e9,
            beta=0.0,
            loss_type="dapo",
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=flags.device == "cpu",
            report_to=[],
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            log_level="error",
        )
        peft = None
        if flags.weights == "lora":
            from peft import LoraConfig

            peft = LoraConfig(r=RANK, lora_alpha=RANK, target_modules="all-linear", task_type="CAUSAL_LM")
        trainer = Trainer(
            model=model,
            reward_funcs=lambda **given: [0.0] * len(given["prompts"]),
            args=config,
            # A fingerprint of its own: the one that is made by default is a pickle, which not every pyarrow allows.
            train_dataset=Dataset(InMemoryTable(pyarrow.table({"prompt": asked})), fingerprint="none"),
            processing_class=tokenizer,
            callbacks=[Clock()],
            peft_config=peft,
        )
        trainer.remove_callback(_printer())
        ready = padded(batch, pad=int(tokenizer.pad_token_id), device=trainer.accelerator.device)
        trainer.train()
        norm = float(next(line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line))
    return seconds[1:], norm


def _printer() -> Any:
    from transformers import PrinterCallback

    return PrinterCallback


def measure(batch: Batch, flags: argparse.Namespace) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the seconds of each side's steps, and the norm of each side's first gradient."""
    import torch

    def clock() -> float:
        if flags.device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    ours = {OURS: our_step(batch, flags, masks=False)}
    if any(step.constraint is not None for step in batch.steps):
        ours[MASKED] = our_step(batch, flags, masks=True)
    seconds: dict[str, list[float]] = {name: [] for name in ours}
    norms: dict[str, float] = {}

    def take_turns() -> None:
        for name, step in ours.items():
            start = clock()
            norm = step()
            seconds[name].append(clock() - start)
            norms.setdefault(name, norm)

    try:
        seconds[PEER], norms[PEER] = peer_steps(batch, flags, take_turns, clock)
    except ImportError:
        for _ in range(flags.rounds + 1):
            take_turns()
    for name in ours:
        seconds[name] = seconds[name][1:]
    return seconds, norms


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--game", action="append", choices=("kuhn", "avalon", "werewolf"), help="may be repeated"
    )
    parser.add_argument("--matches", type=positive, default=1000, help="matches of each game, at most")
    parser.add_argument("--completions", type=positive, default=256, help="at most, of one step")
    parser.add_argument(
        "--batch", type=positive, default=16, help="completions of one of TRL's forward passes"
    )
    parser.add_argument(
        "--pass-tokens", type=positive, default=768, help="tokens of one of our forward passes"
    )
    parser.add_argument("--rounds", type=positive, default=7, help="timed steps of each side")
    parser.add_argument("--weights", choices=("all", "lora"), default="all", help="what is trained")
    parser.add_argument("--device", default="cpu", help="where it is computed")
    parser.add_argument("--seed", type=int, default=1, help="of matches and advantages")
    flags = parser.parse_args(args)
    import torch

    torch.set_num_threads(1)
    batches = [
        played(game, flags.matches, seed=flags.seed, device=flags.device, most=flags.completions)
        for game in flags.game or ["kuhn", "avalon"]
    ]
    batches.append(unlike(min(flags.completions, 64), seed=flags.seed))
    what = "all weights" if flags.weights == "all" else f"LoRA of rank {RANK}"
    print(
        f"One step of GRPO on the embedded model, {what}, float32, {flags.rounds} steps of each side in turns"
    )
    print(machine("evoke-arena", "torch", "transformers", "peft", "trl"))
    rows: list[list[str]] = []
    ratios: list[tuple[str, float]] = []
    missing = False
    for batch in batches:
        cut = len(batch.steps) // flags.batch * flags.batch
        if not cut:
            raise SystemExit(
                f"{batch.name}: {len(batch.steps)} completions, at least --batch {flags.batch} are needed"
            )
        batch = _cut(batch, cut)
        seconds, norms = measure(batch, flags)
        missing = PEER not in seconds
        for name, taken in seconds.items():
            speed = Spread.of(batch.tokens / one for one in taken)
            ratio = "-"
            if name != PEER and not missing:
                spread = Spread.of(b / a for a, b in zip(taken, seconds[PEER], strict=True))
                ratio = spread.show(".2f")
                if name == OURS:
                    ratios.append((batch.name, spread.median))
            rows.append(
                [
                    batch.name,
                    f"{cut}",
                    f"{batch.tokens:,}",
                    name,
                    speed.show(",.0f"),
                    ratio,
                    f"{norms[name]:.4f}",
                ]
            )
    head = ["batch", "completions", "tokens", "side", "tokens/s", "faster than TRL by", "first gradient"]
    print(table(head, rows))
    if missing:
        print(say_missing("trl"))
    for name, median in ratios:
        print(f"{OURS} against {PEER}, {name}: {verdict(median, target=TARGET)}")


def _cut(batch: Batch, count: int) -> Batch:
    kept: list[Trajectory] = []
    advantages: list[list[float]] = []
    for one, row in zip(batch.trajectories, batch.advantages, strict=True):
        steps = one.steps[:count]
        count -= len(steps)
        kept.append(replace(one, steps=steps))
        advantages.append(row[: len(steps)])
    return Batch(batch.name, kept, advantages)


if __name__ == "__main__":
    main()
