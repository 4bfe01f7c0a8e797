"""Lessons in the loop: distilled from its attempts, offered in others, counted, and given up when they do not help.

Chance decides which attempts get advice, and which of several lessons is left out; so what a lesson is worth is read
off a comparison of like with like, whatever the difficulty of the tasks and however the actor changes:

- all advice: attempts for which some was found, those that got it beside those that did not (the control share);
- one lesson that was found alone: the same two;
- one lesson among several: of attempts with advice, those in which it was told beside those in which it was held back.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.memory import Episode, Lesson, Memory, distil
from agents.memory.usefulness import Arms, Gain, gain
from arena.evolve_actors import LEARNS, Done, Job
from arena.evolve_config import LessonsSection
from arena.evolve_log import Entry
from games.rng import Chance, derive_seed
from games.tasks.spec import TaskSpec

SOLE, SEVERAL = "sole", "several"
"""Strata of a lesson's attempts."""
TOLD = 8
"""Attempts at a task, the latest, from which lessons are distilled."""
HURTS_Z = 1.645
"""A lesson hurts when chance alone would show so little gain once in 20 (one-sided)."""
LEAST_WITHOUT = 10
"""Attempts without a lesson that it must be compared with before it is retired."""
TRIM = 0.8
"""Where there are more lessons than are kept, so much of the bound stays: it is not met again at once."""
ALARM_SPAN = 4
"""The alert looks at so many times the attempts that it needs, at most."""
HURTS, GAINS_NOTHING = "hurts", "gains nothing"


@dataclass(frozen=True, slots=True)
class Offer:
    """The advice found for an attempt, and what of it is told."""

    number: int
    """Of the attempt."""
    advised: bool
    """Whether the attempt is one of those with advice, and not of the control share."""
    found: tuple[Lesson, ...]
    told: tuple[Lesson, ...]

    def row(self, shown: int) -> list[Any]:
        """Return what the log keeps; `shown` of the told fitted into the prompt, the others count for nothing."""
        cut = {lesson.id for lesson in self.told[shown:]}
        told = [lesson.id for lesson in self.told[:shown]]
        return [self.number, self.advised, [one.id for one in self.found if one.id not in cut], told]


class Tallies:
    """How attempts with and without each lesson went: a fold of the log."""

    def __init__(self, *, span: int = 200) -> None:
        self.strata: dict[str, dict[str, Arms]] = {}
        self.overall = Arms()
        self.texts: dict[str, str] = {}
        self._latest = {flag: deque[bool](maxlen=span) for flag in (True, False)}

    def fold(self, log: Mapping[str, Any], successes: Mapping[int, bool]) -> None:
        """Take in a generation: its log of lessons, and the success of its attempts by number."""
        self.texts.update(log.get("said", {}))
        for number, advised, found, told in log.get("offers", ()):
            success = successes.get(number)
            if success is None or not found:  # it ended by no doing of the actor, or nothing fitted
                continue
            self.overall = self.overall.add(advised=advised, success=success)
            self._latest[advised].append(success)
            if not advised and len(found) > 1:
                continue
            stratum = SOLE if len(found) == 1 else SEVERAL
            for key in found:
                arms = self.strata.setdefault(key, {})
                arms[stratum] = arms.get(stratum, Arms()).add(advised=key in told, success=success)
        self.merge(log.get("merged", {}))

    def merge(self, merged: Mapping[str, str]) -> None:
        """Add the counts of merged lessons to those they were merged into."""
        for key, into in merged.items():
            for stratum, arms in self.strata.pop(key, {}).items():
                held = self.strata.setdefault(into, {})
                held[stratum] = held.get(stratum, Arms()).plus(arms)

    def arms(self, key: str) -> Arms:
        """Return a lesson's attempts, all strata together."""
        total = Arms()
        for arms in self.strata.get(key, {}).values():
            total = total.plus(arms)
        return total

    def gain(self, key: str) -> Gain | None:
        """Return what a lesson gains, within its strata."""
        return gain(self.strata.get(key, {}).values())

    @property
    def latest(self) -> Arms:
        """The latest attempts for which advice was found, with it and without."""
        given, withheld = self._latest[True], self._latest[False]
        return Arms(len(given), sum(given), len(withheld), sum(withheld))

    def verdict(self, key: str, settings: LessonsSection) -> str | None:
        """Return why a lesson should be retired, or None."""
        arms, found = self.arms(key), self.gain(key)
        if found is None or arms.without_attempts < LEAST_WITHOUT:
            return None
        if arms.with_attempts >= settings.min_offers and found.at_most(HURTS_Z) < 0:
            return HURTS
        if arms.with_attempts >= settings.patience and found.value <= 0:
            return GAINS_NOTHING
        return None


class Keeper:
    """Finds advice, and keeps the store's lessons: adds, counts, retires, merges, evicts.

    Args:
        settings: how.
        store: of the run.
        seed: of the run.
        reads: whether the actor can be told anything; if not, lessons are distilled and none is offered.
    """

    def __init__(self, settings: LessonsSection, store: Memory, *, seed: int, reads: bool) -> None:
        self.settings = settings
        self.store = store
        self.seed = seed
        self.reads = reads
        self.tallies = Tallies(span=ALARM_SPAN * settings.alarm_attempts)
        self._found: dict[str, tuple[Lesson, ...]] = {}

    def fold(self, entry: Entry) -> None:
        """Take in a generation's attempts."""
        self.tallies.fold(entry.lessons, {row.number: row.success for row in entry.attempts})

    def offer(self, spec: TaskSpec, *, number: int, purpose: str, hurts: bool = False) -> Offer | None:
        """Return the advice for an attempt; None where there is none, and for what is not trained on.

        `hurts`: the alert is on, so less of it is told.
        """
        settings = self.settings
        if not self.reads or not settings.share or purpose not in LEARNS:
            return None
        found = self._found.get(spec.hash)
        if found is None:
            advice = self.store.advise(spec, k=settings.k, floor=settings.floor)
            found = self._found[spec.hash] = tuple(one.lesson for one in advice)
        if not found:
            return None
        chance = Chance(derive_seed(self.seed, "advice", number))
        share = settings.share * (settings.back_off if hurts else 1.0)
        advised = chance.draw(1 << 32) < share * (1 << 32)
        told = found if advised else ()
        if len(told) > 1:
            told = tuple(one for one in told if chance.draw(1 << 32) >= settings.held_back * (1 << 32))
        return Offer(number, advised, found, told)

    def log(self, offers: Mapping[int, Offer], jobs: Sequence[Job], done: Sequence[Done]) -> dict[str, Any]:
        """Return what the log keeps of a generation's advice."""
        self._found = {}
        rows = [
            offers[job.number].row(one.shown)
            for job, one in zip(jobs, done, strict=True)
            if job.number in offers
        ]
        told = {one.id: one.text for offer in offers.values() for one in offer.found}
        said = {key: text for key, text in told.items() if key not in self.tallies.texts}
        return {"offers": rows, "said": said} if rows else {}

    def learn(self, entry: Entry, jobs: Iterable[Job], *, quarantined: set[str]) -> None:
        """Distil lessons from a generation whose attempts are in the store, and give up those that do not help.

        What is done stands in the entry's log. Call it within the generation's transaction.
        """
        settings, store, log = self.settings, self.store, entry.lessons
        tried = {row.task for row in entry.attempts if row.purpose in LEARNS} - quarantined
        made: dict[str, Lesson] = {}
        if settings.keep:
            for key, job in {job.spec.hash: job for job in jobs if job.spec.hash in tried}.items():
                held = [one.episode for one in store.episodes(task=key, limit=TOLD)]
                told = [one for one in held if one.purpose in LEARNS]
                made |= {one.id: one for one in distil(job.spec, told, skill=job.skill)}
        new = set(store.add_lessons(made.values()))
        # What was evicted lost its place to others; if it is found once more it gets another chance.
        again = [key for key in made if key not in new and self._status(key) == "evicted"]
        store.set_lesson_status(again, "active", generation=entry.generation)
        retired = {}
        for key in self._offered(entry):
            why = self.tallies.verdict(key, settings)
            if why is not None and self._status(key) == "active":
                retired[key] = why
        store.set_lesson_status(retired, "retired")
        merged: dict[str, str] = {}
        evicted: list[str] = []
        active = len(store.lessons())
        if settings.keep and active > settings.keep:
            merged = store.cluster()
            evicted = store.evict(keep=int(settings.keep * TRIM), generation=entry.generation)
            active -= len(merged) + len(evicted)
        self.tallies.merge(merged)
        done = {
            "made": sorted(new),
            "revived": again,
            "retired": retired,
            "merged": merged,
            "evicted": evicted,
        }
        log.update({name: value for name, value in done.items() if value})
        log["active"] = active

    def _offered(self, entry: Entry) -> list[str]:
        """Return the lessons that were found for attempts of a generation."""
        return sorted({key for _, _, found, _ in entry.lessons.get("offers", ()) for key in found})

    def _status(self, key: str) -> str | None:
        entry = self.store.lesson(key)
        return None if entry is None else entry.status


def restore(store: Memory, dropped: Sequence[Entry]) -> None:
    """Put lessons back to what they were before some generations, which are given oldest first.

    What was made in them is out of force; what was given up in them is in force again. Counts of use stay.
    """
    for entry in reversed(dropped):
        log = entry.lessons
        store.set_lesson_status(
            [*log.get("retired", ()), *log.get("merged", ()), *log.get("evicted", ())], "active"
        )
        store.set_lesson_status([*log.get("made", ()), *log.get("revived", ())], "evicted")


def advice_of(offer: Offer | None) -> tuple[str, ...]:
    """Return what an actor is told."""
    return () if offer is None else tuple(lesson.text for lesson in offer.told)


def note_advice(episode: Episode, offer: Offer | None, done: Done) -> dict[str, Any]:
    """Return the fields of an episode that name its advice: `lessons`, and where they stood in the prompts."""
    if offer is None or not done.shown:
        return {}
    evidence = {**episode.evidence, "advice": dict(done.note or {})}
    return {"lessons": tuple(one.id for one in offer.told[: done.shown]), "evidence": evidence}
