"""All policies of a process: which engines run, which adapters they have, and the agents that share them."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.base import Seat
from agents.errors import EngineFailed
from agents.policy.adapters import FOLDER, Adapter, AdapterStore, check_base
from agents.policy.agent import GenerationSettings, PolicyAgent
from agents.policy.base import BASE, Engine
from agents.policy.batcher import Batcher
from agents.policy.presets import find_model, preset_of
from agents.policy.restarting import RestartingEngine
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY, PolicySpec, parse_spec, served_model

MODELS_FOLDER = "models"
"""Of the state's directory: where models are kept that must be converted first."""

MakeEngine = Callable[[PolicySpec, PolicySettings, str], Engine]
"""From a spec, the settings and the model's folder or name to an engine that was not started."""


@dataclass(slots=True)
class _Running:
    engine: RestartingEngine
    batcher: Batcher
    playing: GenerationSettings


class Policies:
    """Holds the engines that some specs need. Start it on the loop that uses it, and close it there.

    Args:
        settings: how policies are run.
        home: the directory of the state; its `adapters` are those that specs name.
        make: makes the engines; by default `make_engine`.
    """

    def __init__(self, settings: PolicySettings, *, home: Path, make: MakeEngine | None = None) -> None:
        self.settings = settings
        self.home = home
        self.adapters = AdapterStore(home / FOLDER)
        self._make = make or make_engine
        self._running: dict[str, _Running] = {}
        self._pinned: dict[str, Adapter] = {}
        self._pinning = asyncio.Lock()

    async def start(self, specs: Iterable[str]) -> None:
        """Start the engines that `specs` need, one after another.

        Raises `PolicyError`; what runs is then closed. An adapter that is not there is told before a model is loaded.
        """
        wanted = [parse_spec(spec) for spec in specs]
        for adapter in sorted({parsed.adapter for parsed in wanted if parsed.adapter}):
            await asyncio.to_thread(self.adapters.resolve, adapter)
        try:
            for parsed in wanted:
                if parsed.engine not in self._running:
                    self._running[parsed.engine] = await self._start(parsed)
        except BaseException:
            await self.close()
            raise

    async def _start(self, spec: PolicySpec) -> _Running:
        settings = self.settings
        model = settings.model
        if _is_local(spec, settings):
            model = str(await asyncio.to_thread(find_model, model, cache=self.home / MODELS_FOLDER))
        engine = RestartingEngine(
            lambda: self._make(spec, settings, model), retries=settings.engine_retries, verify=self._verify
        )
        await engine.start()
        return _Running(
            engine,
            Batcher(engine, max_wait_s=settings.max_wait_s, max_queued=settings.max_queued),
            playing(settings, spec),
        )

    def _of(self, spec: str) -> tuple[PolicySpec, _Running]:
        parsed = parse_spec(spec)
        running = self._running.get(parsed.engine)
        if running is None:
            raise EngineFailed(f"player {spec!r}: its engine was not started")
        return parsed, running

    async def pin(self, spec: str) -> str:
        """Return the adapter version that `spec` stands for now, known to its engine: a match keeps it to its end.

        Raises `PolicyError`.
        """
        parsed, running = self._of(spec)
        if not parsed.adapter:
            return BASE
        adapter = await asyncio.to_thread(self.adapters.resolve, parsed.adapter)
        async with self._pinning:
            self._pinned[adapter.ref] = adapter
            if running.engine.published(adapter.ref):
                running.engine.expect(adapter.ref)
            else:
                check_base(adapter, model=running.engine.model)
                await asyncio.to_thread(self.adapters.verify, adapter)
                await running.engine.publish(adapter.ref, str(adapter.path))
        return adapter.ref

    def agent(self, spec: str, seat: Seat, *, match: str = "", adapter: str = BASE) -> PolicyAgent:
        """Return an agent for `seat`.

        Args:
            spec: whose engine was started.
            seat: where it sits.
            match: sets the match's requests apart from those of others.
            adapter: what `pin` returned.
        """
        _, running = self._of(spec)
        agent = PolicyAgent(
            seat,
            batcher=running.batcher,
            playing=running.playing,
            adapter=adapter,
            match=match,
            on_close=lambda: running.engine.release(adapter),
        )
        running.engine.hold(adapter)
        return agent

    def _verify(self, ref: str) -> None:
        self.adapters.verify(self._pinned[ref])

    def batcher(self, spec: str) -> Batcher:
        """Return the queue of the engine that plays for `spec`."""
        return self._of(spec)[1].batcher

    def facts(self) -> dict[str, dict[str, float]]:
        """Return the counters and gauges of queue and engine, by engine."""
        return {
            name: {
                **{f"engine_{key}": value for key, value in running.engine.facts().items()},
                **{f"queue_{key}": value for key, value in running.batcher.facts().items()},
            }
            for name, running in self._running.items()
        }

    async def close(self) -> None:
        """Call off what runs, and let go of the engines."""
        running, self._running = self._running, {}
        for one in running.values():
            await one.batcher.close()
            await one.engine.close()


def playing(settings: PolicySettings, spec: PolicySpec) -> GenerationSettings:
    """Return how a policy plays: by the settings, with prompts in its model's own style where none is set."""
    preset = preset_of(settings.model) if _is_local(spec, settings) else None
    style: Literal["full", "compact"] = "full" if preset is None else preset.style
    budget = None if preset is None else preset.budget_tokens
    return GenerationSettings(
        mode=settings.mode,
        style=style if settings.style == "auto" else settings.style,
        temperature=settings.temperature,
        top_p=settings.top_p,
        budget_tokens=budget if settings.budget_tokens is None else settings.budget_tokens,
        speech_tokens=settings.speech_tokens,
        thought_tokens=settings.thought_tokens,
    )


def _is_local(spec: PolicySpec, settings: PolicySettings) -> bool:
    """Whether the model is a preset or a folder of this machine."""
    return spec.engine == POLICY and settings.backend != "openai"


def make_engine(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
    """Return the engine for a spec, not started. Raises `PolicyError`."""
    if spec.engine != POLICY:
        return _openai(spec.model, spec.url, settings)
    if settings.backend == "openai":
        parsed = served_model(settings.model)
        return _openai(parsed.model, parsed.url, settings)
    if settings.backend == "vllm":
        from agents.policy.vllm_local import VllmEngine, VllmSettings

        return VllmEngine(
            VllmSettings(
                model=model,
                max_batch=settings.max_batch,
                context_tokens=settings.context_tokens,
                dtype=settings.dtype,
                max_lora_rank=settings.vllm_lora_rank,
                gpu_memory=settings.vllm_gpu_memory,
                tensor_parallel=settings.vllm_tensor_parallel,
            )
        )
    from agents.policy.local_model import TransformersSettings
    from agents.policy.transformers_engine import TransformersEngine

    return TransformersEngine(
        TransformersSettings(
            model=model,
            device=settings.device,
            dtype=settings.dtype,
            threads=settings.threads,
            max_batch=settings.max_batch,
            context_tokens=settings.context_tokens,
            kv_cache_mb=settings.kv_cache_mb,
            prefix_cache_mb=settings.prefix_cache_mb,
        )
    )


def _openai(model: str, url: str, settings: PolicySettings) -> Engine:
    from agents.policy.openai_http import OpenAIEngine, OpenAISettings

    return OpenAIEngine(
        OpenAISettings(
            model=model,
            url=url,
            dialect=settings.openai_dialect,
            length_field=settings.openai_length_field,
            key_env=settings.openai_key_env,
            key_in_clear=settings.openai_key_in_clear,
            tokenizer=settings.openai_tokenizer,
            max_batch=settings.max_batch,
            context_tokens=settings.context_tokens,
            timeout_s=settings.openai_timeout_s,
            attempts=settings.openai_attempts,
            publish=settings.openai_publish,
            max_total_tokens=settings.openai_max_total_tokens,
            prompt_price=settings.openai_prompt_price,
            cached_price=settings.openai_cached_price,
            completion_price=settings.openai_completion_price,
        )
    )
