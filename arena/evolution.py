"""One run of the loop, a generation at a time; see `arena.evolve`."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from agents.curriculum.alerts import Alert, collapse, disagreement, duplicates, retrieval, wasted
from agents.curriculum.curve import Axes
from agents.curriculum.generator import Batch, Generator, Proposal, Wanted
from agents.curriculum.makers import Drawn, Maker
from agents.curriculum.rows import AttemptRow
from agents.curriculum.shift import compare
from agents.curriculum.strategies import Request
from agents.curriculum.switch import hopeless, reason_not_to_train
from agents.errors import PolicyError
from agents.judges.base import Case, Judgement
from agents.judges.evaluator import Evaluator
from agents.judges.queue import PersonQueue
from agents.judges.regression import regress
from agents.memory import Episode, Memory, TaskRecord, Version
from arena.errors import EvolveError
from arena.evolve_actors import Actor, Done, Job
from arena.evolve_config import EvolveConfig
from arena.evolve_lessons import Keeper, Offer, advice_of, note_advice
from arena.evolve_log import (
    STATE,
    Bundle,
    Entry,
    LiveMemory,
    State,
    note,
    read_entries,
)
from arena.evolve_players import told
from arena.evolve_proposer import Proposer
from games.rng import derive_seed
from games.tasks.check import Attempt, check
from games.tasks.spec import TaskSpec

PROBE_TRIES = 24
SUSPECT_ROWS = 2_000
"""Of the newest attempts, those in which hopeless tasks are looked for."""
SHIFT_ROWS = 100
"""Attempts in each of the two stretches that are compared."""
SHIFT_LOOKS = 25
"""Comparisons of the alert, which looks again and again, that share a false alarm's 0.05; the report looks once."""
NO_ATTEMPT = "trial"
"""The store's purpose of an attempt that ended by no doing of the actor: it counts for nothing."""


class Evolution:
    """A run at work. One generation is `step`; it is committed before the method returns."""

    def __init__(
        self,
        config: EvolveConfig,
        *,
        store: Memory,
        state: State,
        queue: PersonQueue,
        evaluator: Evaluator,
        actor: Actor,
        maker: Maker,
        proposer: Proposer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.store = store
        self.state = state
        self.queue = queue
        self.evaluator = evaluator
        self.actor = actor
        self.maker = maker
        self.proposer = proposer
        self.keeper = Keeper(config.lessons, store, seed=config.seed, reads=actor.reads)
        self.clock = clock
        self.axes = Axes(config.curriculum.scales)
        self.generator = Generator(config.curriculum, maker, seed=config.seed)
        self.live = LiveMemory(store)
        self.entries: list[Entry] = []
        self._since = time.monotonic()
        for entry in read_entries(store, state.lineage):
            self._take_in(entry)
            actor.fold(entry.attempts)

    async def begin(self) -> None:
        """Try the judge, note the versions, and make the fixed tasks where there are none yet."""
        await self._regress()
        state, config = self.state, self.config
        bundle = Bundle(
            id=len(state.bundles),
            generation=state.next_generation,
            digest=config.digest,
            config=config.recorded(),
            generator=self.maker.name,
            judge=self.evaluator.version,
            actor=self.actor.version,
            policy=self.actor.policy,
            proposer=self.proposer.policy if self.proposer is not None else "",
        )
        if not state.bundles or bundle != replace(state.current, id=bundle.id, generation=bundle.generation):
            state.bundles.append(bundle)
            state.bundle = bundle.id
        with self.store.transaction():
            self.store.add_versions(
                [
                    Version("config", config.digest, detail=bundle.config),
                    Version("generator", self.maker.name),
                    Version("judge", self.evaluator.version),
                    Version("actor", self.config.actor),
                    *([Version("policy", self.actor.policy)] if self.actor.policy else []),
                    *self._proposer_versions(),
                ]
            )
            if not state.probes:
                self._make_probes()
            self._save()

    async def step(self) -> Entry:
        """Do one generation."""
        config, state, live = self.config, self.state, self.live
        asked = config.loop.tasks
        if config.budget.tasks is not None:
            asked = min(asked, max(1, config.budget.tasks - state.tasks))
        standing = self.generator.standings.read(live)
        entry = Entry(
            generation=state.next_generation,
            bundle=state.bundle,
            standing={s: (a.level, standing.targets[s]) for s, a in standing.abilities.items()},
        )
        batch = await self._propose(entry, start=state.next_task, count=asked)
        entry.refused = dict(batch.refused)
        entry.tasks = [proposal.row() for proposal in (*batch.train, *batch.test)]
        jobs, rows, offers = self._jobs(batch.train)
        done = await self.actor.attempt_all(jobs)
        entry.lessons = self.keeper.log(offers, jobs, done)
        judged = await self._judge(
            jobs, [Attempt(job.spec.hash, one.actions) for job, one in zip(jobs, done, strict=True)]
        )
        episodes = []
        for job, row, one, (case, judgement, also) in zip(jobs, rows, done, judged, strict=True):
            episode = self._episode(job, case, judgement, also, done=one, offer=offers.get(job.number))
            episodes.append(episode)
            if one.fault:
                entry.faults.append(f"attempt {job.number}: {one.fault}")
            else:
                entry.attempts.append(replace(row, success=episode.success, progress=episode.progress))
        entry.truth = self.actor.truth()
        self._put_in_queue(judged)
        new = {row.task for row in entry.tasks if row.purpose != "review"}
        records = [
            TaskRecord(
                proposal.task.spec,
                skill=proposal.skill,
                strategy=proposal.strategy,
                status="test" if proposal.purpose == "test" else "train",
                generation=entry.generation,
                time=self.clock(),
            )
            for proposal in (*batch.train, *batch.test)
            if proposal.task.spec is not None and proposal.task.hash in new and proposal.purpose != "review"
        ]
        self._take_in(entry, specs={record.spec.hash: record.spec for record in records})
        self._quarantine(entry)
        self._alert(entry)
        state.next_generation += 1
        state.next_task += asked
        state.next_attempt += len(jobs)
        state.tasks += len(batch.train)
        state.lineage.append(entry.generation)
        now = time.monotonic()
        state.seconds += now - self._since
        entry.seconds, self._since = state.seconds, now
        with self.store.transaction():
            self.store.add_tasks(records)
            self.store.add_episodes(episodes)
            self.keeper.learn(entry, jobs, quarantined=self.live.quarantined)
            self.store.set_status(sorted(entry.quarantined), "quarantine")
            self.store.put(note(entry.generation), entry.to_data())
            self._save()
        if (entry.generation + 1) % config.judge.regress_every == 0:
            await self._regress()
        return entry

    def spent(self) -> str | None:
        """Return which part of the budget is spent, if one is."""
        budget, state = self.config.budget, self.state
        if budget.tasks is not None and state.tasks >= budget.tasks:
            return "tasks"
        limit = budget.limit_s
        if limit is not None and state.seconds + time.monotonic() - self._since >= limit:
            return "seconds"
        return None

    def _save(self) -> None:
        self.store.put(STATE, self.state.to_data())

    def _take_in(self, entry: Entry, *, specs: dict[str, TaskSpec] | None = None) -> None:
        self.entries.append(entry)
        for task in entry.tasks:
            self.live.add_task(task, (specs or {}).get(task.task))
        for row in entry.attempts:
            self.live.add_attempt(row)
        self.keeper.fold(entry)
        self.live.quarantined.update(entry.quarantined)

    def _make_probes(self) -> None:
        """Make the fixed tasks: for each skill and level, of a seed of their own."""
        config = self.config
        found: dict[str, TaskRecord] = {}
        for skill in config.curriculum.skills:
            for level in config.probe.levels:
                for i in range(config.probe.each):
                    request = Request(skill, self.axes.balanced(level), "probe")
                    for again in range(PROBE_TRIES):
                        seed = derive_seed(config.seed, "probe", skill, str(level), i, again)
                        drawn = self.maker.make(request, seed=seed, memory=self.live)
                        if drawn is not None and drawn.spec is not None and drawn.hash not in found:
                            record = TaskRecord(
                                drawn.spec, skill=skill, strategy="probe", status="test", time=self.clock()
                            )
                            found[drawn.hash] = record
                            break
        self.store.add_tasks(found.values())
        self.state.probes = list(found)

    def _proposer_versions(self) -> list[Version]:
        own = self.proposer
        if own is None:
            return []
        return [Version("generator", own.version, detail=own.detail), Version("policy", own.policy)]

    async def _propose(self, entry: Entry, *, start: int, count: int) -> Batch:
        """Return the tasks of this generation: the generator says what is wanted, it or the proposer makes it."""
        steps = self.generator.steps(self.live, start=start, count=count)
        asked: Counter[int] = Counter()
        made: Drawn | str | None = None
        while True:
            try:
                wanted = steps.send(made)
            except StopIteration as done:
                batch: Batch = done.value
                break
            made = await self._make(wanted, entry, asked)
        proposer = self.proposer
        if proposer is not None:
            own = [
                one
                for one in (*batch.train, *batch.test)
                if one.task.spec is not None and one.task.spec.generator == proposer.version
            ]
            entry.proposals = {
                "version": proposer.version,
                "numbers": len(asked),
                "tries": asked.total(),
                "accepted": sum(one.purpose == "train" for one in own),
                "test": sum(one.purpose == "test" for one in own),
                "failed": len(entry.faults),
                "refused": dict(Counter(why for number, why in batch.refusals if number in asked)),
            }
        return batch

    async def _make(self, wanted: Wanted, entry: Entry, asked: Counter[int]) -> Drawn | str | None:
        """Make one task. Where the proposer's model fails, the rest of the generation is the maker's."""
        proposer = self.proposer
        if proposer is not None and not entry.faults and proposer.due(wanted.number):
            try:
                made = await proposer.make(wanted, self.live)
                asked[wanted.number] += 1
                return made
            except PolicyError as error:
                entry.faults.append(f"proposer, task {wanted.number}: {told(error)}")
        return self.maker.make(wanted.request, seed=wanted.seed, memory=self.live)

    def _proposed(self, window: int) -> tuple[int, int]:
        """Return how many of the proposer's latest tries, `window` or more, were taken, and how many there were."""
        taken = tries = 0
        for past in reversed(self.entries):
            if tries >= window:
                break
            taken += past.proposals.get("accepted", 0)
            tries += past.proposals.get("tries", 0)
        return taken, tries

    def _jobs(self, proposals: list[Proposal]) -> tuple[list[Job], list[AttemptRow], dict[int, Offer]]:
        """Return the attempts of this generation, with their rows, success still open, and the advice for them."""
        config, state = self.config, self.state
        jobs: list[Job] = []
        rows: list[AttemptRow] = []
        offers: dict[int, Offer] = {}
        hurts = "retrieval" in state.raised

        def add(spec: TaskSpec, skill: str, purpose: str, similarity: float) -> None:
            number = state.next_attempt + len(jobs)
            offer = self.keeper.offer(spec, number=number, purpose=purpose, hurts=hurts)
            if offer is not None:
                offers[number] = offer
            seed = derive_seed(config.seed, "attempt", number)
            jobs.append(Job(number, spec, skill, purpose, seed, advice_of(offer)))
            rows.append(
                AttemptRow(
                    number=number,
                    task=spec.hash,
                    skill=skill,
                    skills=spec.skills,
                    difficulty=tuple(value for _, value in spec.difficulty),
                    success=False,
                    purpose=purpose,
                    policy=self.actor.policy,
                    generator=spec.generator,
                    judge=self.evaluator.version,
                    similarity=similarity,
                )
            )

        for proposal in proposals:
            spec = proposal.task.spec
            if spec is not None:
                for _ in range(config.loop.attempts):
                    add(spec, proposal.skill, proposal.purpose, proposal.similarity)
        if state.next_generation % config.probe.every == 0:
            for key in state.probes:
                entry = self.store.task(key)
                if entry is not None:
                    add(entry.spec, entry.record.skill, "probe", 0.0)
            if config.probe.test:
                latest = [row for past in self.entries[-200:] for row in past.tasks if row.purpose == "test"]
                for task in latest[-config.probe.test :]:
                    held = self.live.task(task.task)
                    if held is not None:
                        add(held, task.skill, "test", task.similarity)
        return jobs, rows, offers

    async def _judge(
        self, jobs: list[Job], attempts: list[Attempt]
    ) -> list[tuple[Case, Judgement, list[tuple[Case, Judgement]]]]:
        """Judge every attempt; of those that failed, ask whatever else is to be asked."""
        cases = [Case(job.spec, attempt) for job, attempt in zip(jobs, attempts, strict=True)]
        judgements = await self.evaluator.judge_all(cases)
        others = [
            [Case(case.spec, case.attempt, question) for question in self.config.judge.ask]
            if not judgement.answer
            else []
            for case, judgement in zip(cases, judgements, strict=True)
        ]
        asked = await self.evaluator.judge_all([case for some in others for case in some])
        answers = iter(asked)
        also = [[(case, next(answers)) for case in some] for some in others]
        return list(zip(cases, judgements, also, strict=True))

    def _episode(
        self,
        job: Job,
        case: Case,
        judgement: Judgement,
        also: list[tuple[Case, Judgement]],
        *,
        done: Done,
        offer: Offer | None,
    ) -> Episode:
        evidence = judgement.to_data()
        if also:
            evidence["also"] = [one.to_data() for _, one in also]
        purpose = {"probe": "test"}.get(job.purpose, job.purpose)
        fault = done.fault
        episode = Episode.of(
            job.spec,
            id=f"{self.config.name}-{job.number:08d}",
            attempt=case.attempt,
            verdict=check(case.spec, case.attempt),
            actor=self.config.actor,
            policy=self.actor.policy,
            judge=judgement.version,
            purpose=NO_ATTEMPT if fault else purpose,
            generation=self.state.next_generation,
            time=self.clock(),
            feedback=fault or judgement.reason,
            evidence=evidence,
            success=judgement.answer is True,
        )
        return replace(episode, **note_advice(episode, offer, done))

    def _put_in_queue(self, judged: list[tuple[Case, Judgement, list[tuple[Case, Judgement]]]]) -> None:
        name = self.config.name
        room = self.config.judge.max_waiting - self.queue.counts(run=name)["waiting"]
        waiting = [pair for case, judgement, also in judged for pair in ((case, judgement), *also)]
        wanted = [(case, judgement) for case, judgement in waiting if judgement.queued is not None]
        self.queue.put(wanted[: max(0, room)], run=name)

    def _quarantine(self, entry: Entry) -> None:
        """Note which tasks may not train any more, with the reason."""
        switch = self.config.curriculum.switch
        recent = [row for row in self.live.attempts(limit=SUSPECT_ROWS) if row.purpose in ("train", "review")]
        disputed = set(self.queue.disputed_tasks())
        suspects = disputed | hopeless(recent, switch)
        for row in recent:
            if row.task in self.live.quarantined or row.task in entry.quarantined:
                continue
            why = reason_not_to_train(row, switch, suspects=suspects)
            if why is not None:
                entry.quarantined[row.task] = "a person disputes its verdict" if row.task in disputed else why
        self.live.quarantined.update(entry.quarantined)

    def _alert(self, entry: Entry) -> None:
        """Raise what is newly wrong."""
        alarms = self.config.curriculum.alarms
        rows = self.live.attempts(limit=max(4 * alarms.window, 3 * SHIFT_ROWS))
        refused: Counter[str] = Counter()
        accepted = 0
        for past in reversed(self.entries):
            refused.update(past.refused)
            accepted += sum(row.purpose == "train" for row in past.tasks)
            if accepted + refused.total() >= alarms.window:
                break
        found: list[Alert | None] = [
            collapse(rows, alarms),
            duplicates(accepted, refused, alarms),
            disagreement(self.state.verdicts, alarms),
            retrieval(self.keeper.tallies.latest, least=self.config.lessons.alarm_attempts),
            wasted(*self._proposed(alarms.window), alarms),
        ]
        plain = [row for row in rows if row.purpose in ("train", "probe")]
        if len(plain) >= 2 * SHIFT_ROWS:
            shift = compare(
                plain[-2 * SHIFT_ROWS : -SHIFT_ROWS], plain[-SHIFT_ROWS:], self.axes, looks=SHIFT_LOOKS
            )
            if shift.verdict in ("worse", "both"):
                text = f"the agent got worse: {-shift.by_agent:.0%} less success at equal difficulty"
                found.append(Alert("worse", text, shift.z_agent, 0.0))
        on = [alert for alert in found if alert is not None]
        entry.alerts = [alert.to_data() for alert in on if alert.kind not in self.state.raised]
        self.state.raised = [alert.kind for alert in on]

    async def _regress(self) -> None:
        """Judge the fixed trajectories. Raises `EvolveError` where a verdict is not the recorded one."""
        asking = Evaluator(replace(self.evaluator.settings, ask_decided=True), model=self.evaluator.model)
        found = await regress(asking)
        data = found.to_data()
        wrong = [row["name"] for row in data["table"] if not row["right"]]
        if wrong:
            raise EvolveError(
                f"judge regression: {len(wrong)} of {data['cases']} fixed trajectories come out otherwise, first "
                f"{wrong[0]!r}; see `arena judge regress`"
            )
        # The judge that was tried is the run's; that it was asked about decided cases too makes it no other.
        kept = {key: value for key, value in data.items() if key != "table"}
        self.state.regression = {**kept, "judge": self.evaluator.version}
        heard = [
            (f"{row.fixed.name} ({finding.layer})", finding.says == "yes")
            for row in found.rows
            for judgement in row.judgements
            for finding in judgement.findings
            if finding.failure is None
        ]
        self.state.verdicts = heard
