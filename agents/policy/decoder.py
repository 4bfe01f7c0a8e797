"""Many completions at once: sequences join and leave a running batch between two forward passes.

All of it runs on one thread that may block. Sequences of one adapter version share a lane, and a lane is computed
as one batch. A sequence that ends makes room at once; a token that is the only one allowed is taken without being
computed, with the log-probability 0 that it has.
"""

import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agents.errors import PolicyError, PromptTooLong, UnknownAdapter
from agents.policy.base import Completion, FinishReason, Request
from agents.policy.constraints import Guide, Guides
from agents.policy.kv import BLOCK_TOKENS, Group, PrefixCache, Rows, block_keys
from agents.policy.local_model import LocalModel
from agents.policy.sampling import draw
from agents.policy.schemas import token_bound
from agents.policy.tokens import PromptTokens

GROUP_TOKENS = 16
"""Padding that costs about what attention for one more group does."""
SPARE_ROWS = 8
"""Sequences for which room is made ahead."""
MAX_PASS_TOKENS = 8192
"""Tokens of one forward pass, padding included, unless one sequence alone has more."""


@dataclass(eq=False, slots=True)
class Job:
    """A request on its way. `ticket` is the caller's; setting `cancelled` ends the work."""

    request: Request
    ticket: Any = None
    cancelled: bool = False
    queued_at: float = field(default_factory=time.monotonic)


@dataclass(eq=False, slots=True)
class _Running:
    """A sequence in a lane; `computed` of its tokens have keys and values, `pending` come next."""

    job: Job
    prompt: tuple[int, ...]
    guide: Guide
    bound: int
    keys: list[bytes]
    computed: int
    cached: int
    queue_s: float
    pending: list[int]
    uniform: random.Random
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: FinishReason | None = None
    text: str | None = None
    error: PolicyError | None = None
    """Why it ended without an answer."""


class _Lane:
    def __init__(self, rows: Rows, root: bytes) -> None:
        self.rows = rows
        self.root = root
        self.running: list[_Running] = []
        """By row."""


Ended = tuple[Job, Completion | PolicyError]


class Decoder:
    """Runs jobs to their completions, a step at a time."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.max_batch = model.settings.max_batch
        self.prompts = PromptTokens(model.tokenizer)
        self.guides = Guides(model.tokenizer.inner, vocabulary_size=model.vocabulary_size)
        self.cache = PrefixCache(
            model.shape,
            max_bytes=model.settings.prefix_cache_mb << 20,
            dtype=model.dtype,
            device=model.device,
        )
        self._waiting: deque[Job] = deque()
        self._lanes: dict[str, _Lane] = {}
        self.counts = dict.fromkeys(
            (
                "requests",
                "failures",
                "prompt_tokens",
                "cached_tokens",
                "completion_tokens",
                "forced_tokens",
                "passes",
                "pass_rows",
                "pass_tokens",
                "padding_tokens",
                "busy_s",
            ),
            0.0,
        )

    def add(self, job: Job) -> None:
        """Take a job in; it starts as soon as there is room."""
        self._waiting.append(job)

    @property
    def waiting(self) -> int:
        """Jobs for which there was no room yet."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not any(lane.running for lane in self._lanes.values())

    def step(self) -> list[Ended]:
        """Let jobs in, compute one token for all sequences, and return the jobs that ended."""
        import torch

        began = time.monotonic()
        ended: list[Ended] = []
        with torch.inference_mode():
            self._drop_cancelled()
            self._admit(ended)
            for version, lane in list(self._lanes.items()):
                if any(one.finish is None for one in lane.running):
                    self._try_pass(version, lane)
                self._leave(lane, ended)
                if not lane.running and len(self._lanes) > 1:
                    del self._lanes[version]
        self.counts["busy_s"] += time.monotonic() - began
        return ended

    def abandon(self) -> list[Job]:
        """Drop everything and return the jobs that were not done."""
        jobs = [*self._waiting, *(one.job for lane in self._lanes.values() for one in lane.running)]
        self._waiting.clear()
        self._lanes.clear()
        self.cache.clear()
        return jobs

    def _drop_cancelled(self) -> None:
        if any(job.cancelled for job in self._waiting):
            self._waiting = deque(job for job in self._waiting if not job.cancelled)
        for lane in self._lanes.values():
            gone = [row for row, one in enumerate(lane.running) if one.job.cancelled]
            self._remove(lane, gone)

    def _admit(self, ended: list[Ended]) -> None:
        room = self.max_batch - sum(len(lane.running) for lane in self._lanes.values())
        new: dict[str, list[_Running]] = {}
        rooms = {version: lane.rows.room for version, lane in self._lanes.items()}
        while self._waiting and room > 0:
            job = self._waiting[0]
            version = job.request.adapter
            try:
                prompt, bound = self._measure(job.request)
                # All that it may come to need is set aside now: what runs is never in want of memory.
                held = len(new.get(version, ())) + self._held(version)
                grown = self._lane(version).rows.grown(held + 1, len(prompt) + bound)
                wanted = rooms | {version: _larger(grown, rooms.get(version, (0, 0)))}
                if not self._fits(wanted):
                    if self._held() or new:
                        break  # in turn: what comes after it waits as well
                    self._lanes.clear()
                    wanted = {version: self._lane(version).rows.grown(1, len(prompt) + bound)}
                one = self._start(job, prompt, bound)
            except PolicyError as error:
                self.counts["failures"] += 1
                ended.append((job, error))
            else:
                rooms = wanted
                new.setdefault(version, []).append(one)
                room -= 1
            self._waiting.popleft()
            self.counts["requests"] += 1
        for version, started in new.items():
            lane = self._lane(version)
            # Neighbours of like length are computed together, see `_passes`.
            started.sort(key=lambda one: len(one.pending))
            first = len(lane.running)
            lane.running += started
            rooms[version] = self._with_spare(version, rooms)
            lane.rows.reserve(*rooms[version], used=first)
            blocks = [self.cache.lookup(one.keys[: one.cached // BLOCK_TOKENS]) for one in started]
            self.cache.load(lane.rows, first=first, blocks=blocks)

    def _with_spare(self, version: str, rooms: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Return a lane's room, with some for those who come next where it grows anyway and the bound allows it."""
        rows, tokens = rooms[version]
        have = self._lane(version).rows.room
        spare = (max(rows, min(2 * have[0], rows + SPARE_ROWS, self.max_batch)), tokens)
        return spare if (rows, tokens) != have and self._fits({**rooms, version: spare}) else (rows, tokens)

    def _held(self, version: str | None = None) -> int:
        """Return how many sequences run: all, or those of one adapter version."""
        lanes = self._lanes.items()
        return sum(len(lane.running) for name, lane in lanes if version in (None, name))

    def _fits(self, rooms: Mapping[str, tuple[int, int]]) -> bool:
        """Whether so much room in the lanes is within the bound, also while what runs moves to a larger one."""
        total = 0
        for version, room in rooms.items():
            lane = self._lane(version)
            total += lane.rows.bytes_of(room)
            if lane.running and room != lane.rows.room:
                total += lane.rows.bytes_of(lane.rows.room)
        return total <= self.model.settings.kv_cache_mb << 20

    def _lane(self, version: str) -> _Lane:
        lane = self._lanes.get(version)
        if lane is None:
            rows = Rows(self.model.shape, dtype=self.model.dtype, device=self.model.device)
            lane = self._lanes[version] = _Lane(rows, version.encode())
        return lane

    def _measure(self, request: Request) -> tuple[tuple[int, ...], int]:
        """Return the token ids of the prompt, and how many tokens may follow."""
        if not self.model.knows(request.adapter):
            known = ", ".join(self.model.published()) or "none"
            raise UnknownAdapter(f"adapter: got {request.adapter!r}, published to this engine are: {known}")
        prompt = self.prompts.ids(request.messages)
        room = self.model.context_tokens - len(prompt)
        bound = token_bound(request.constraint, request.max_tokens)
        if room < 1 or (request.constraint is not None and room < bound):
            raise PromptTooLong(
                f"the prompt leaves {max(room, 0)} of {self.model.context_tokens} tokens, "
                f"the answer may need {bound}"
            )
        return prompt, min(bound, room)

    def _start(self, job: Job, prompt: tuple[int, ...], bound: int) -> _Running:
        request = job.request
        guide = self.guides.guide(request.constraint)
        keys = block_keys(prompt, root=request.adapter.encode())
        known_blocks = self.cache.lookup(keys[: (len(prompt) - 1) // BLOCK_TOKENS])
        cached = len(known_blocks) * BLOCK_TOKENS
        now = time.monotonic()
        one = _Running(
            job=job,
            prompt=prompt,
            guide=guide,
            bound=bound,
            keys=keys,
            computed=cached,
            cached=cached,
            queue_s=now - job.queued_at,
            pending=list(prompt[cached:]),
            uniform=random.Random(request.seed),
        )
        self._take_forced(one)
        self.counts["prompt_tokens"] += len(prompt)
        self.counts["cached_tokens"] += cached
        return one

    def _try_pass(self, version: str, lane: _Lane) -> None:
        try:
            self._pass(version, lane)
        except PolicyError as error:  # an adapter that was put away, and cannot be loaded again
            for one in lane.running:
                if one.finish is None:
                    one.finish, one.error = "stop", error

    def _pass(self, version: str, lane: _Lane) -> None:
        """Compute what is pending, and draw a token for each sequence."""
        for groups in _passes(lane.running):
            members = [one for _, group in groups for one in group]
            asked = [
                Group(first, [one.pending or [0] for one in group], [one.computed for one in group])
                for first, group in groups
            ]
            real = sum(len(one.pending) for one in members)
            self.counts["passes"] += 1
            self.counts["pass_rows"] += len(members)
            self.counts["pass_tokens"] += real
            self.counts["padding_tokens"] += sum(one.width * len(one.tokens) for one in asked) - real
            logits = self.model.forward(version, lane.rows, asked)
            for one in members:
                one.computed += len(one.pending)
                one.pending = []
            self._draw(logits, members)

    def _draw(self, logits: Any, group: Sequence[_Running]) -> None:
        open_rows = [i for i, one in enumerate(group) if one.finish is None]
        few = [i for i in open_rows if group[i].guide.ids is not None]
        rest = [i for i in open_rows if group[i].guide.ids is None]
        if few:
            self._draw_listed(logits, group, few)
        if rest:
            self._draw_any(logits, group, rest)

    def _draw_listed(self, logits: Any, group: Sequence[_Running], rows: Sequence[int]) -> None:
        import torch

        allowed: list[Any] = [group[i].guide.ids for i in rows]
        width = max(map(len, allowed))
        ids = np.zeros((len(rows), width), dtype=np.int64)
        barred = np.ones((len(rows), width), dtype=np.bool_)
        for place, own in enumerate(allowed):
            ids[place, : len(own)] = own
            barred[place, : len(own)] = False
        index = torch.from_numpy(ids).to(logits.device)
        chosen = torch.tensor(rows, device=logits.device)
        scores = logits[chosen].gather(1, index)
        scores = scores.masked_fill(torch.from_numpy(barred).to(logits.device), float("-inf"))
        columns, logprobs = _draw_rows(scores, [group[i] for i in rows])
        for place, (row, column, logprob) in enumerate(zip(rows, columns, logprobs, strict=True)):
            self._emit(group[row], int(ids[place, column]), logprob)

    def _draw_any(self, logits: Any, group: Sequence[_Running], rows: Sequence[int]) -> None:
        import torch

        scores = logits[torch.tensor(rows, device=logits.device)]
        for place, row in enumerate(rows):
            mask = group[row].guide.mask
            if mask is not None:
                scores[place].masked_fill_(torch.from_numpy(~mask).to(scores.device), float("-inf"))
        columns, logprobs = _draw_rows(scores, [group[i] for i in rows])
        for row, column, logprob in zip(rows, columns, logprobs, strict=True):
            self._emit(group[row], column, logprob)

    def _emit(self, one: _Running, token: int, logprob: float) -> None:
        self._append(one, token, logprob)
        self._take_forced(one)

    def _take_forced(self, one: _Running) -> None:
        while one.finish is None and (token := one.guide.forced) is not None:
            self.counts["forced_tokens"] += 1
            self._append(one, token, 0.0)

    def _append(self, one: _Running, token: int, logprob: float) -> None:
        request = one.job.request
        one.tokens.append(token)
        one.logprobs.append(logprob)
        ends = self.model.ends if request.constraint is None else (self.guides.vocabulary.end,)
        if token in ends:
            one.finish = "stop"
            return
        if request.stop and request.constraint is None:
            text = self._text(one.tokens)
            found = [place for stop in request.stop if stop and (place := text.find(stop)) >= 0]
            if found:
                one.finish, one.text = "stop", text[: min(found)]
                return
        try:
            one.guide.advance(token)
        except PolicyError as error:  # a grammar that gives up is this request's failure, not the engine's
            one.finish, one.error = "stop", error
            return
        one.pending.append(token)
        if len(one.tokens) >= one.bound:
            one.finish = "length"

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self.model.tokenizer.inner.decode(tokens, skip_special_tokens=True))

    def _leave(self, lane: _Lane, ended: list[Ended]) -> None:
        """Let sequences that ended go, and keep what was computed of them."""
        gone = [row for row, one in enumerate(lane.running) if one.finish is not None]
        if not gone:
            return
        kept = []
        for row in gone:
            one = lane.running[row]
            known = (one.prompt + tuple(one.tokens))[: one.computed]
            kept.append(
                (row, block_keys(known, root=lane.root, known=one.keys[: len(known) // BLOCK_TOKENS]))
            )
            ended.append((one.job, one.error or self._completion(one)))
            self.counts["failures"] += one.error is not None
        if self.cache.capacity:
            self.cache.save(lane.rows, kept)
        self._remove(lane, gone)

    def _remove(self, lane: _Lane, gone: Sequence[int]) -> None:
        """Close the gaps: the last row moves into each."""
        for row in reversed(gone):
            last = lane.running.pop()
            if row < len(lane.running):
                lane.rows.move(len(lane.running), row, tokens=last.computed)
                lane.running[row] = last

    def _completion(self, one: _Running) -> Completion:
        assert one.finish is not None
        text = one.text
        if text is None and one.job.request.constraint is not None:
            known = self.guides.vocabulary.tokens
            text = b"".join(known.get(token, b"") for token in one.tokens).decode(errors="replace")
        elif text is None:
            text = self._text(one.tokens)
        self.counts["completion_tokens"] += len(one.tokens)
        return Completion(
            text=text,
            prompt_ids=one.prompt,
            token_ids=tuple(one.tokens),
            logprobs=tuple(one.logprobs),
            finish_reason=one.finish,
            adapter=one.job.request.adapter,
            cached_tokens=one.cached,
            queue_s=one.queue_s,
        )


def _larger(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), max(one[1], other[1])


def _draw_rows(scores: Any, running: Sequence[_Running]) -> tuple[list[int], list[float]]:
    requests = [one.job.request for one in running]
    return draw(
        scores,
        temperatures=np.array([request.temperature for request in requests], dtype=np.float64),
        top_ps=np.array([request.top_p for request in requests], dtype=np.float64),
        uniforms=np.array([one.uniform.random() for one in running], dtype=np.float64),
    )


def _passes(running: Sequence[_Running]) -> list[list[tuple[int, list[_Running]]]]:
    """Return the forward passes: of each the groups, as (first row, sequences) with little padding."""
    groups: list[tuple[int, list[_Running]]] = []
    passes = [groups]
    end, room = len(running), MAX_PASS_TOKENS
    while end:
        width = 1
        start = end
        while start:
            size = max(len(running[start - 1].pending), 1)
            larger = max(width, size)
            if (end - start + 1) * larger > room and (start < end or groups):
                break
            # What is left of here would be padded to `width`: worth a group of its own?
            if start < end and (width - size) * start > GROUP_TOKENS:
                break
            width, start = larger, start - 1
        if start == end:  # no room for one more
            groups, room = [], MAX_PASS_TOKENS
            passes.append(groups)
            continue
        groups.append((start, list(running[start:end])))
        room -= width * (end - start)
        end = start
    return passes
