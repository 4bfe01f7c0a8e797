"""Pretraining from the first match to the written folder."""

import hashlib
import json
import platform
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agents.base import Seat
from agents.errors import EngineMissing
from agents.policy.chat import ChatTokenizer, one_line
from agents.policy.presets import TINY
from agents.policy.pretrain.attempts import AttemptPlan, attempt_plans, demonstrate
from agents.policy.pretrain.evaluate import score
from agents.policy.pretrain.matches import Plan, Sample, plans, play
from agents.policy.pretrain.mixture import GAMES, WORLDS, Mixture
from agents.policy.pretrain.model import CONTEXT_TOKENS, make_model
from agents.policy.pretrain.packing import Encoded, Pack, pack
from agents.policy.pretrain.tokenizer import make_tokenizer
from agents.policy.pretrain.training import Point, Recipe, kind_weights, steps_of, train
from agents.policy.pretrain.words import common_words, count_words
from agents.policy.quiet import hush
from agents.prompting.attempts import attempt_version
from agents.prompting.prompter import Prompter
from games.registry import load_game
from games.rng import derive_seed

PROVENANCE = "provenance.json"
WEIGHTS = "model.safetensors"
VOCABULARY_MATCHES = 100
"""So many matches of each game say which words are known."""
HELD_OUT_SHARE = 0.06
HANDS_TOGETHER = 24
"""Decisions of Kuhn poker in one tree: few, so that every stretch of the training sees some."""
VERSIONS = ("torch", "transformers", "tokenizers", "safetensors", "numpy")

Progress = Callable[[str, int, int, str], None]
"""Takes the stage, how much of it is done, how much there is, and a remark."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the weights, beside the versions of the libraries.

    Args:
        matches: of Avalon and Werewolf to learn from; where a mixture names sources, matches or attempts of each.
        seed: of the matches, the fresh weights and the order of training.
        threads: of torch; another number may round otherwise.
        recipe: how to train.
        mixture: what is learned from.
    """

    matches: int
    seed: int = 0
    threads: int = 1
    recipe: Recipe = field(default_factory=Recipe)
    mixture: Mixture = field(default_factory=Mixture)

    def plans(self, matches: int, *, seed: int) -> list[Plan | AttemptPlan]:
        """Return the matches, and attempts, of the mixture, by its own way of counting."""
        made: list[Plan | AttemptPlan] = [*plans(matches, seed=seed, mixture=self.mixture)]
        tried = attempt_plans(matches, seed=seed, mixture=self.mixture)
        if tried:
            made += tried
            random.Random(derive_seed(seed, "order")).shuffle(made)
        return made


class _Encoder:
    """Samples to tokens, by the chat template and tokenizer that are used in play, with a hash of all it saw."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self.end = int(tokenizer.inner.eos_token_id)
        self.digest = hashlib.sha256()
        self.tokens = 0

    def __call__(self, sample: Sample) -> Encoded:
        text = self.tokenizer.render(sample.messages)
        self.digest.update(f"{text}\x00{sample.answer}\x00".encode())
        inner = self.tokenizer.inner
        prompt = tuple(inner.encode(text, add_special_tokens=False))
        answer = tuple(inner.encode(sample.answer, add_special_tokens=False, split_special_tokens=True))
        self.tokens += len(prompt) + len(answer) + 1
        return Encoded(prompt, (*answer, self.end), f"{sample.game} {sample.team} {sample.label}")


def pretrain(out: Path, settings: Settings, *, command: str, progress: Progress) -> dict[str, Any]:
    """Make a model and write it to `out` with its tokenizer and provenance; return the provenance.

    Args:
        out: a folder; made where it is missing, files of the same names replaced.
        settings: what decides the weights.
        command: as it was given, for the provenance.
        progress: is told how far it is.

    Raises `EngineMissing` without torch and transformers.
    """
    hush()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise EngineMissing(
            f"pretraining needs torch and transformers: {one_line(error)}; install the extra 'policy'"
        ) from None
    began = time.perf_counter()
    before = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    transformers.utils.logging.disable_progress_bar()
    try:
        chosen = settings.plans(settings.matches, seed=settings.seed)
        tokenizer = _tokenizer(out, chosen)
        encoder = _Encoder(tokenizer)
        packs = _packs(chosen, encoder, progress)
        model = make_model(tokenizer.inner, seed=settings.seed)
        steps = steps_of(packs, seed=settings.seed, step_nodes=settings.recipe.step_nodes)
        curve = train(
            model,
            steps,
            weights=kind_weights(packs),
            recipe=settings.recipe,
            report=_report(progress),
        )
        held_out = _held_out(settings, _Encoder(tokenizer), progress)
        scores = score(model, held_out)
        model.save_pretrained(out)
        (out / WEIGHTS).chmod(0o644)  # safetensors makes files that nobody else may read
    finally:
        torch.set_num_threads(before)
    provenance = {
        "command": command,
        "settings": _recorded(settings),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in VERSIONS}},
        "prompts": prompt_versions(settings.mixture.names),
        "data": {
            "matches": dict(sorted(Counter(plan.game for plan in chosen).items())),
            "decisions": dict(sorted(Counter(kind for tree in packs for kind in tree.kinds).items())),
            "tokens": encoder.tokens,
            "nodes": sum(len(tree.tokens) for tree in packs),
            "sha256": encoder.digest.hexdigest(),
        },
        "model": {
            "parameters": sum(p.numel() for p in model.parameters()),
            "vocabulary": len(tokenizer.inner),
            "weights_sha256": hashlib.sha256((out / WEIGHTS).read_bytes()).hexdigest(),
            "weights_bytes": (out / WEIGHTS).stat().st_size,
        },
        "curve": [point._asdict() for point in curve],
        "held_out": [each._asdict() for each in scores],
        "seconds": round(time.perf_counter() - began, 1),
    }
    (out / PROVENANCE).write_text(json.dumps(_rounded(provenance), indent=1) + "\n", encoding="utf-8")
    return provenance


def _recorded(settings: Settings) -> dict[str, Any]:
    """Return the settings as data; the mixture where it is not the embedded model's."""
    made = asdict(settings)
    if settings.mixture == Mixture():
        del made["mixture"]
    return made


def _tokenizer(out: Path, chosen: Sequence[Plan | AttemptPlan]) -> ChatTokenizer:
    """Write the tokenizer whose words are those of the first matches, and read it back as play does."""
    texts: list[str] = []
    for name in dict.fromkeys(plan.game for plan in sorted(chosen, key=_rank)):
        for plan in [plan for plan in chosen if plan.game == name][:VOCABULARY_MATCHES]:
            for sample in _samples(plan):
                texts += (*(message.content for message in sample.messages), sample.answer)
    out.mkdir(parents=True, exist_ok=True)
    make_tokenizer(common_words(texts), context_tokens=CONTEXT_TOKENS).save_pretrained(out)
    return ChatTokenizer(out)


def _rank(plan: Plan | AttemptPlan) -> int:
    return (*GAMES, *WORLDS).index(plan.game)


def _samples(plan: Plan | AttemptPlan) -> Iterator[Sample]:
    assert TINY.budget_tokens is not None
    if isinstance(plan, AttemptPlan):
        return demonstrate(plan, budget_tokens=TINY.budget_tokens, count=count_words)
    return play(plan, budget_tokens=TINY.budget_tokens, count=count_words)


def _packs(chosen: Sequence[Plan | AttemptPlan], encoder: _Encoder, progress: Progress) -> list[Pack]:
    """Play and pack, match by match; the short hands of Kuhn poker are packed together."""
    packs: list[Pack] = []
    hands: list[Encoded] = []
    for done, plan in enumerate(chosen):
        decisions = [encoder(sample) for sample in _samples(plan)]
        if plan.game == "kuhn":
            hands += decisions
        else:
            packs += pack(decisions)
        if done % 100 == 0:
            progress("matches", done, len(chosen), f"{len(packs)} trees")
    return [*packs, *pack(hands, max_decisions=HANDS_TOGETHER)]


def _held_out(settings: Settings, encoder: _Encoder, progress: Progress) -> list[Encoded]:
    count = max(round(settings.matches * HELD_OUT_SHARE), 2)
    chosen = settings.plans(count, seed=derive_seed(settings.seed, "held out"))
    chosen.sort(key=_rank)
    progress("held-out matches", 0, len(chosen), "")
    return [encoder(sample) for plan in chosen for sample in _samples(plan)]


def _report(progress: Progress) -> Callable[[Point, int], None]:
    def report(point: Point, steps: int) -> None:
        progress("steps", point.step + 1, steps, f"loss {point.loss:.3f}, {point.seconds:.0f} s")

    return report


def prompt_versions(names: Sequence[str] = GAMES) -> list[str]:
    """Return the versions of the compact prompts of games and worlds."""
    made = []
    for name in names:
        if name in WORLDS:
            made.append(attempt_version("compact"))
            continue
        game = load_game(name)
        seat = Seat(game, game.default_seats, game.parse_options(None), 0, 0)
        made.append(Prompter(seat, style="compact", budget_tokens=64, count=count_words).version)
    return list(dict.fromkeys(made))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
