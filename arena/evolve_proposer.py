"""A language model that sets some of the new tasks of `arena evolve`.

It is asked under the schema of every task: to choose among proven edits of a parent, or to write one as JSON. What it
proposes passes exactly the checks of the generator's own tasks, try for try.
"""

import hashlib
from typing import Any

from agents.curriculum.curve import Axes
from agents.curriculum.generator import Wanted
from agents.curriculum.makers import Drawn, Maker
from agents.curriculum.proposals import MALFORMED, NO_OFFER, Refusal, offers, parent_for, read_proposal
from agents.curriculum.rows import Memory
from agents.policy.agent import GenerationSettings
from agents.policy.base import BASE, Constraint, Message, Request
from agents.policy.batcher import Batcher
from agents.prompting.proposals import json_messages, offer_messages, version
from agents.prompting.task_schema import task_schema
from arena.evolve_config import ProposerSection
from arena.evolve_players import policy_name
from games.rng import derive_seed
from games.tasks.goals import short
from games.tasks.spec import canonical_json

OWNER = "proposer"
"""Whose requests its are, where the batcher is fair between matches."""
ROOT = 0.41421356237309503
"""Spreads the proposer's tasks evenly, and independently of the strategies, which are spread by the golden section."""
OFFERS, JSON = "offers", "json"

_WORDS = {
    "easy": "it would be solved too often",
    "hard": "it would be solved too seldom",
    "far": "it lies far beyond what can be solved",
    "duplicate": "it was set before",
    "similar": "it is too much like a task that was set before",
}


class Proposer:
    """Makes tasks by asking a model.

    Args:
        batcher: before the engine that answers.
        settings: which share of the tasks, and how it is asked.
        world: of the tasks.
        axes: the scales of difficulty.
        seed: of the run.
        maker: makes a parent where the memory has none.
        adapter: the adapter version that answers.
        playing: style and sampling of its prompts.
    """

    def __init__(
        self,
        batcher: Batcher,
        *,
        settings: ProposerSection,
        world: str,
        axes: Axes,
        seed: int,
        maker: Maker,
        adapter: str = BASE,
        playing: GenerationSettings | None = None,
    ) -> None:
        self.batcher = batcher
        self.settings = settings
        self.world = world
        self.axes = axes
        self.seed = seed
        self.maker = maker
        self.adapter = adapter
        self.playing = GenerationSettings() if playing is None else playing
        weak = self.playing.style == "compact"
        self.mode = (OFFERS if weak else JSON) if settings.mode == "auto" else settings.mode
        self.policy = policy_name(batcher, adapter)
        self.detail: dict[str, Any] = {
            "policy": self.policy,
            "prompt": version(self.mode, self.playing.style),
            "temperature": self.playing.temperature,
            "top_p": self.playing.top_p,
            "tokens": settings.tokens,
            "world": world,
        }
        digest = hashlib.sha256(canonical_json(self.detail).encode("ascii")).hexdigest()
        self.version = f"proposer-{self.mode}-1/{digest[:12]}"
        """What its tasks bear as their generator; changes whenever it may propose otherwise."""
        self._refused: set[tuple[str, str]] = set()
        self._words = ""

    def due(self, number: int) -> bool:
        """Whether it makes the task of that number, where that is a new one."""
        place = derive_seed(self.seed, OWNER) / 2**63 + number * ROOT
        return place % 1.0 < self.settings.share

    async def make(self, wanted: Wanted, memory: Memory) -> Drawn | str:
        """Return the task that it proposes, or in a word why there is none.

        Depends on `wanted` and the tries at the same number before it, on the memory and on what the model samples.
        Raises `PolicyError`.
        """
        if wanted.attempt == 0:
            self._refused, self._words = set(), ""
        refused = _WORDS.get(wanted.refused, self._words or wanted.refused)
        made = await (self._choose if self.mode == OFFERS else self._write)(wanted, memory, refused)
        if isinstance(made, Refusal):
            self._words = made.words
            return made.reason
        self._words = ""
        return made

    async def _choose(self, wanted: Wanted, memory: Memory, refused: str) -> Drawn | Refusal:
        request = wanted.request
        parent = parent_for(request, memory, self.axes)
        if parent is None:
            drawn = self.maker.make(request, seed=wanted.seed, memory=memory)
            parent = None if drawn is None else drawn.spec
        if parent is None:
            return Refusal(NO_OFFER, "task: there is no parent to be varied")
        gone = frozenset(name for key, name in self._refused if key == parent.hash)
        offered = offers(parent, request, seed=wanted.seed, generator=self.version, without=gone)
        if not offered:
            return Refusal(NO_OFFER, f"task: no edit of the parent takes {request.skill}")
        messages = offer_messages(
            style=self.playing.style,
            skill=request.skill,
            wanted=request.difficulty,
            parent=parent,
            offers=offered,
            refused=refused,
        )
        said = await self._ask(wanted, messages, Constraint(choices=tuple(offered)))
        spec = offered.get(said.strip())
        if spec is None:
            return Refusal(MALFORMED, f"choice: got {short(said)}, allowed are {', '.join(offered)}")
        self._refused.add((parent.hash, said.strip()))  # it is offered again only if it was taken
        return Drawn.of(spec)

    async def _write(self, wanted: Wanted, memory: Memory, refused: str) -> Drawn | Refusal:
        request = wanted.request
        parent = parent_for(request, memory, self.axes)
        messages = json_messages(
            world=self.world,
            skill=request.skill,
            wanted=request.difficulty,
            parent=parent,
            refused=refused,
        )
        said = await self._ask(wanted, messages, Constraint(schema=task_schema(self.world)))
        return read_proposal(
            said,
            request,
            generator=self.version,
            world=self.world,
            parent=None if parent is None else parent.hash,
        )

    async def _ask(self, wanted: Wanted, messages: tuple[Message, ...], constraint: Constraint) -> str:
        request = Request(
            messages,
            constraint=constraint,
            max_tokens=self.settings.tokens,
            temperature=self.playing.temperature,
            top_p=self.playing.top_p,
            seed=derive_seed(wanted.seed, OWNER),
            adapter=self.adapter,
            match=OWNER,
        )
        return (await self.batcher.submit(request)).text
