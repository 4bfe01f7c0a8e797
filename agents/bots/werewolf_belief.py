"""Who is a werewolf: an exact posterior over role assignments, from the events a seat may see.

A hypothesis is a set of wolves together with the seat of the seer; where the other roles sit multiplies every
hypothesis alike, so all deals have the same prior. Hard facts make a hypothesis impossible: its probability
is exactly 0. Soft evidence multiplies likelihoods, whose parameters (`Likelihoods`) are fitted to self-play by
`benchmarks/werewolf_fit.py`.

Public evidence is weighed as an onlooker would weigh it; a seat's own belief leaves out what it said and voted
itself and adds what it alone was told.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from games.base import Event
from games.werewolf.setup import DOCTOR, HUNTER, SEER, WEREWOLF, WITCH

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Parameters of the soft evidence.

    A seat that accuses (votes for or suspects) picks among the living others with weight exp(score). The score
    of a target is `follow` × its public probability to be a wolf, plus `nose` if a village seat faces a
    wolf, minus `shield` if a wolf faces a wolf. Everything else is a probability, and none that is fitted lies
    outside 0.05 … 0.95, so that players unlike those of the fit are not held for impossible.
    """

    vote_follow: float = 7.788
    vote_follow_wolf: float = 4.8522
    vote_nose: float = 0.0
    vote_shield: float = 1.8
    abstain: float = 0.02
    abstain_wolf: float = 0.03
    say_follow: float = 6.0654
    say_follow_wolf: float = 8.0
    say_nose: float = 0.1
    say_shield: float = 0.0
    trust_follow: float = 10.0
    trust_nose: float = 1.5
    trust_cover: float = 0.0
    """Trusting: village seats lean to low suspicion and away from wolves; wolves lean to wolves by `cover`."""
    claim_seer: float = 0.5236
    claim_wolf: float = 0.095
    claim_other: float = 0.002
    """Chance that the seer, a wolf, or somebody else begins to claim the seer's role in a speech."""
    wrong: float = 0.01
    """Chance that a true seer misreports, or that a village seat claims a role that is another's."""
    frame: float = 0.95
    bus: float = 0.05
    cover: float = 0.05
    """A wolf's false report: `frame`, the chance to call a village seat a wolf; `bus`, to call a wolf a wolf;
    `cover`, to call a wolf no wolf."""
    silent: float = 0.05
    """Chance that the true seer lets a false claim stand when speaking."""
    spared: float = 0.7857
    """Chance that a true seer who has claimed lives through the next night."""
    mute: float = 0.05
    mute_wolf: float = 0.15
    """Chance of a speech that accuses nobody."""
    role_wolf: float = 0.3775
    """How likely a wolf is to claim doctor, hunter or witch, against a village seat's 1."""


FITTED = Likelihoods()


class Said(NamedTuple):
    """What a speech claims: the own role, the seer's results, and whom the speaker suspects, trusts, would kill."""

    role: str | None = None
    results: tuple[tuple[int, bool], ...] = ()
    suspect: int | None = None
    trust: int | None = None
    kill: int | None = None


_ROLE = re.compile(rf"\bI am (?:the|a) ({SEER}|{DOCTOR}|{HUNTER}|{WITCH})\b", re.IGNORECASE)
_RESULT = re.compile(r"\b(\d{1,2}) is (a werewolf|a wolf|not|no were|no wolf)", re.IGNORECASE)
_SUSPECT = re.compile(r"\bI suspect (?:seat )?(\d{1,2})\b", re.IGNORECASE)
_TRUST = re.compile(r"\bI trust (?:seat )?(\d{1,2})\b", re.IGNORECASE)
_KILL = re.compile(r"\bkill (?:seat )?(\d{1,2})\b", re.IGNORECASE)


@lru_cache(maxsize=2048)
def parse_speech(text: str, seats: int) -> Said:
    """Return the claims in a speech; seats that do not exist are left out."""
    role = _ROLE.search(text)
    named = role.group(1).lower() if role else None
    results: dict[int, bool] = {}
    if named == SEER:
        for number, verdict in _RESULT.findall(text):
            results.setdefault(int(number), verdict.lower().startswith("a "))
    return Said(
        named,
        tuple((seat, wolf) for seat, wolf in results.items() if seat < seats),
        _one(_SUSPECT, text, seats),
        _one(_TRUST, text, seats),
        _one(_KILL, text, seats),
    )


def _one(pattern: re.Pattern[str], text: str, seats: int) -> int | None:
    found = pattern.search(text)
    return int(found.group(1)) if found and int(found.group(1)) < seats else None


@lru_cache(maxsize=64)
def assignments(seats: int, wolves: int, seer: bool) -> tuple[Vector, Vector]:
    """Return the hypotheses: who is a wolf, who is the seer; two read-only arrays (seats, hypotheses) of 0 and 1."""
    packs = [frozenset(pack) for pack in combinations(range(seats), wolves)]
    # By pack first: what depends on the pack alone is computed once and repeated for each seer.
    pairs = [(pack, at) for pack in packs for at in (range(seats) if seer else (-1,)) if at not in pack]
    wolf = np.array([[seat in pack for pack, _ in pairs] for seat in range(seats)], dtype=float)
    sight = np.array([[seat == at for _, at in pairs] for seat in range(seats)], dtype=float)
    wolf.setflags(write=False)
    sight.setflags(write=False)
    return wolf, sight


@dataclass(slots=True)
class _Claims:
    """What a seat claimed so far."""

    role: str
    results: dict[int, bool] = field(default_factory=dict)


class Belief:
    """The posterior of one seat (None: of the public).

    Args:
        seat: whose belief it is; its private events are taken as facts.
        likelihoods: parameters of the soft evidence.
        hard_only: weigh facts alone.
    """

    def __init__(
        self, seat: int | None, *, likelihoods: Likelihoods = FITTED, hard_only: bool = False
    ) -> None:
        self.seat = seat
        self.likelihoods = likelihoods
        self.hard_only = hard_only
        self.seats = 0
        self.alive: list[int] = []
        self.claims: dict[int, _Claims] = {}
        self._mix: dict[str, int] = {}
        self._known: dict[int, str] = {}
        self._night_dead: list[int] = []
        self._kept_silent: set[int] = set()
        self._votes_open = False
        self._cache: dict[str, Vector] = {}

    def observe(self, event: Event) -> None:
        """Fold one event in."""
        fold = getattr(self, f"_on_{event.kind}", None)
        if fold is not None:
            self._cache.clear()
            fold(event.data)

    @property
    def wolf(self) -> Vector:
        """Probability of each seat to be a werewolf, as this seat knows it; shape (seats,)."""
        return self._marginal("wolf", self._wolf, own=True)

    @property
    def seer(self) -> Vector:
        """Probability of each seat to be the seer, as this seat knows it; shape (seats,)."""
        return self._marginal("seer", self._seer, own=True)

    @property
    def public_wolf(self) -> Vector:
        """Probability of each seat to be a werewolf, as an onlooker knows it; shape (seats,)."""
        return self._marginal("public_wolf", self._wolf, own=False)

    @property
    def public_seer(self) -> Vector:
        """Probability of each seat to be the seer, as an onlooker knows it; shape (seats,)."""
        return self._marginal("public_seer", self._seer, own=False)

    @property
    def pretended(self) -> Vector:
        """What this seat would believe of each seat if it were a villager; shape (seats,). What a wolf pretends."""
        found = self._cache.get("pretended")
        if found is None:
            possible = self._public_possible & (self._wolf[self.seat] == 0)
            found = self._cache["pretended"] = self._wolf @ self._normal(self._public - self._own, possible)
        return found

    def possible(self, wolves: Sequence[int], seer: int | None) -> bool:
        """Whether the hypothesis of these wolves and this seer has any probability."""
        column = self._possible.copy()
        for seat in range(self.seats):
            column &= self._wolf[seat] == (seat in wolves)
            column &= self._seer[seat] == (seat == seer)
        return bool(column.any())

    def _marginal(self, name: str, of: Vector, *, own: bool) -> Vector:
        found = self._cache.get(name)
        if found is None:
            key = "weights" if own else "public_weights"
            weights = self._cache.get(key)
            if weights is None:
                weights = self._cache[key] = self._weights(own=own)
            found = self._cache[name] = of @ weights
        return found

    def _weights(self, *, own: bool) -> Vector:
        possible = self._possible if own else self._public_possible
        return self._normal(self._public - self._own if own else self._public, possible)

    @staticmethod
    def _normal(log: Vector, possible: Mask) -> Vector:
        weights: Vector = np.where(possible, np.exp(log - log[possible].max()), 0.0)
        weights /= weights.sum()
        return weights

    # Hard facts

    def _on_start(self, data: dict[str, Any]) -> None:
        self.seats, self._mix = data["seats"], data["mix"]
        self.alive = list(range(self.seats))
        self._wolf, self._seer = assignments(self.seats, self._mix[WEREWOLF], SEER in self._mix)
        self._packs, _ = assignments(self.seats, self._mix[WEREWOLF], False)
        count = self._wolf.shape[1]
        self._public, self._own = np.zeros(count), np.zeros(count)
        self._public_possible, self._possible = np.ones(count, dtype=bool), np.ones(count, dtype=bool)

    def _on_role(self, data: dict[str, Any]) -> None:
        self._possible &= self._has_role(data["seat"], data["role"])

    def _on_pack(self, data: dict[str, Any]) -> None:
        for seat in range(self.seats):
            self._possible &= self._wolf[seat] == (seat in data["seats"])

    def _on_see(self, data: dict[str, Any]) -> None:
        self._possible &= self._wolf[data["at"]] == data["wolf"]

    def _on_attack(self, data: dict[str, Any]) -> None:
        self._possible &= self._wolf[data["at"]] == 0

    def _on_night(self, data: dict[str, Any]) -> None:
        self._someone_is_left()

    def _on_dawn(self, data: dict[str, Any]) -> None:
        self._votes_open = False
        dead = [seat for seat, _ in data["dead"]]
        for seat, role in data["dead"]:
            self._bury(seat, role)
        # Wolves attack no wolf, so a wolf that died by night was poisoned, and there is one poison. A lone victim
        # was poisoned only if the attacked seat lived, which in a night with poison takes a doctor.
        if WITCH not in self._mix or (DOCTOR not in self._mix and len(dead) == 1):
            self._fact(self._wolf[dead].sum(axis=0) == 0)
        self._night_dead += dead
        self._fact(self._wolf[self._night_dead].sum(axis=0) <= 1)
        if not self.hard_only:
            for seat, claim in self.claims.items():
                if claim.role == SEER and seat in self.alive:
                    self._weigh(self._seer[seat] * np.log(self.likelihoods.spared), None)

    def _on_out(self, data: dict[str, Any]) -> None:
        self._bury(data["seat"], data["role"])

    def _on_shot(self, data: dict[str, Any]) -> None:
        self._fact(self._has_role(data["seat"], HUNTER))
        if data["at"] is not None:
            self._bury(data["at"], data["role"])

    def _on_end(self, data: dict[str, Any]) -> None:
        for seat, role in enumerate(data["roles"]):
            self._fact(self._has_role(seat, role))

    def _bury(self, seat: int, role: str | None) -> None:
        self.alive.remove(seat)
        if role is not None:
            self._fact(self._has_role(seat, role))
            self._known[seat] = role

    def _has_role(self, seat: int, role: str) -> Mask:
        fits: Mask = (self._wolf[seat] == (role == WEREWOLF)) & (self._seer[seat] == (role == SEER))
        return fits

    def _someone_is_left(self) -> None:
        """The match goes on, so a wolf lives and the others are not outnumbered (nor equalled, if unarmed)."""
        wolves = self._wolf[self.alive].sum(axis=0)
        others = len(self.alive) - wolves
        armed = HUNTER in self._mix or WITCH in self._mix
        self._fact((wolves >= 1) & ((wolves <= others) if armed else (wolves < others)))

    def _fact(self, holds: Mask) -> None:
        self._public_possible &= holds
        self._possible &= holds

    # Soft evidence

    def _weigh(self, log: Vector, by: int | None) -> None:
        self._public = self._public + log
        if by is not None and by == self.seat:
            self._own = self._own + log
        self._cache.clear()

    def _on_vote(self, data: dict[str, Any]) -> None:
        if not self._votes_open:
            self._someone_is_left()
        self._votes_open = True
        if self.hard_only:
            return
        rates = self.likelihoods
        tied: Sequence[int] = data.get("tied", ()) if not data.get("runoff") else ()
        candidates = self._candidates if data.get("runoff") else self.alive
        self._candidates: list[int] = list(tied)
        picks = self._picks(
            candidates, rates.vote_follow, rates.vote_nose, rates.vote_follow_wolf, -rates.vote_shield
        )
        total = np.zeros(self._packs.shape[1])
        abstains = np.log(rates.abstain), np.log(rates.abstain_wolf)
        votes = np.log1p(-rates.abstain), np.log1p(-rates.abstain_wolf)
        for voter, at in data["votes"]:
            log = _mixed(self._packs[voter], *(abstains if at is None else votes))
            if at is not None:
                log += picks.of(voter, at)
            total += log
            if voter == self.seat:
                self._own = self._own + self._spread(log)
        self._weigh(self._spread(total), None)

    def _on_speech(self, data: dict[str, Any]) -> None:
        if not self._votes_open:
            self._someone_is_left()
            self._votes_open = True
        if not self.hard_only:
            seat, said = data["seat"], parse_speech(data["text"], self.seats)
            self._hear(seat, said)
            if said.suspect is None:
                rates = self.likelihoods
                self._weigh(_mixed(self._wolf[seat], np.log(rates.mute), np.log(rates.mute_wolf)), seat)

    def _on_last_words(self, data: dict[str, Any]) -> None:
        if not self.hard_only:
            said = parse_speech(data["text"], self.seats)
            self._hear(data["seat"], said._replace(suspect=None, trust=None))

    def _hear(self, seat: int, said: Said) -> None:
        rates = self.likelihoods
        if said.role == SEER and SEER in self._mix:
            self._hear_seer(seat, said.results)
        elif any(claim.role == SEER and other != seat for other, claim in self.claims.items()):
            if seat not in self._kept_silent and seat not in self.claims:
                self._kept_silent.add(seat)
                self._weigh(self._seer[seat] * np.log(rates.silent), seat)
        if said.role is not None and said.role != SEER and seat not in self.claims:
            self._hear_role(seat, said.role)
        if said.suspect is not None and said.suspect != seat and said.suspect in self.alive:
            picks = self._picks(
                self.alive, rates.say_follow, rates.say_nose, rates.say_follow_wolf, -rates.say_shield
            )
            self._weigh(self._spread(picks.of(seat, said.suspect)), seat)
        if said.trust is not None and said.trust != seat and said.trust in self.alive:
            picks = self._picks(
                self.alive, -rates.trust_follow, -rates.trust_nose, -rates.trust_follow, rates.trust_cover
            )
            self._weigh(self._spread(picks.of(seat, said.trust)), seat)

    def _hear_seer(self, seat: int, results: tuple[tuple[int, bool], ...]) -> None:
        rates, wolf, seer = self.likelihoods, self._wolf[seat], self._seer[seat]
        other = 1 - wolf - seer
        claim = self.claims.get(seat)
        log = np.zeros_like(self._public)
        if claim is None or claim.role != SEER:
            claim = self.claims[seat] = _Claims(SEER)
            log += seer * np.log(rates.claim_seer) + wolf * np.log(rates.claim_wolf)
            log += other * np.log(rates.claim_other)
        for at, verdict in results:
            if at in claim.results or at == seat:
                continue
            claim.results[at] = verdict
            target = self._wolf[at]
            if verdict:
                true, lie = _mixed(target, np.log(rates.wrong), 0.0), (rates.frame, rates.bus)
            else:
                true, lie = _mixed(target, 0.0, np.log(rates.wrong)), (1 - rates.frame, rates.cover)
            log += seer * true + wolf * _mixed(target, np.log(lie[0]), np.log(lie[1])) + other * np.log(0.5)
        self._weigh(log, seat)

    def _hear_role(self, seat: int, role: str) -> None:
        rates, wolf, seer = self.likelihoods, self._wolf[seat], self._seer[seat]
        rivals = [other for other, claim in self.claims.items() if claim.role == role]
        self.claims[seat] = _Claims(role)
        log = wolf * np.log(rates.role_wolf) + seer * np.log(rates.wrong)
        holder = [other for other, known in self._known.items() if known == role and other not in self.alive]
        if role not in self._mix or (holder and seat not in holder):
            log += (1 - wolf) * np.log(rates.wrong)
        for rival in rivals:
            log += (1 - wolf) * (1 - self._wolf[rival]) * np.log(rates.wrong)
        self._weigh(log, seat)

    def _spread(self, log: Vector) -> Vector:
        """Return a log-likelihood by pack as one by hypothesis: every pack stands there once for each seer."""
        repeated: Vector = np.repeat(log, self._wolf.shape[1] // len(log))
        return repeated

    def _picks(
        self, candidates: Sequence[int], follow: float, nose: float, follow_wolf: float, shield: float
    ) -> "_Picks":
        return _Picks(self._packs, self.public_wolf, list(candidates), (follow, nose), (follow_wolf, shield))


class _Picks:
    """Log-likelihoods of picking a seat among candidates: exp(follow × suspicion + lean if it is a wolf)."""

    def __init__(
        self,
        packs: Vector,
        suspicion: Vector,
        candidates: list[int],
        village: tuple[float, float],
        wolves: tuple[float, float],
    ) -> None:
        self.packs = packs
        self.sides = []
        mean = float(suspicion[candidates].sum()) / len(candidates)
        for follow, lean in (village, wolves):
            scores = follow * (suspicion - mean)
            weights = np.zeros(len(suspicion))
            weights[candidates] = np.exp(scores[candidates])
            self.sides.append(
                (lean, scores.tolist(), weights.tolist(), weights.sum() + np.expm1(lean) * (weights @ packs))
            )

    def of(self, seat: int, at: int) -> Vector:
        """Return the log-likelihood that `seat` picks `at`, by pack."""
        (nose, score, weight, total), (shield, score_wolf, weight_wolf, total_wolf) = self.sides
        # The own weight leaves the sum; a wolf's own weight stood there with the lean of a wolf.
        own = _mixed(self.packs[seat], weight[seat], weight_wolf[seat] * float(np.exp(shield)))
        norm = _mixed(self.packs[seat], total, total_wolf) - own
        wolf = self.packs[seat]
        picked: Vector = _mixed(wolf, score[at], score_wolf[at]) + _mixed(wolf, nose, shield) * self.packs[at]
        picked -= np.log(norm)
        return picked


def _mixed(wolf: Vector, village: Any, wolves: Any) -> Vector:
    """Return `village` where the seat is no wolf and `wolves` where it is."""
    mixed: Vector = np.where(wolf > 0, wolves, village)
    return mixed
