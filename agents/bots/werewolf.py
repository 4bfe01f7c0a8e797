"""The scripted Werewolf player: reasons over an exact posterior, speaks in claims, and deceives as a wolf.

What it says follows a few templates that it also understands from others (`parse_speech`): "I am the seer: 3 is
a werewolf, 5 is not." · "I am the hunter." · "I suspect 5." · "I trust 2." · among wolves "Kill 4."
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agents.base import Bot, Decision, Seat
from agents.bots.werewolf_belief import FITTED, Belief, Likelihoods, Said, parse_speech
from games.base import Event
from games.referee import Turn
from games.rng import derive_seed
from games.spaces import Action, ActionSpace, Choice, Text
from games.werewolf.setup import ABSTAIN, DOCTOR, HEAL, HUNTER, NONE, POISON, SEER, VILLAGER, WEREWOLF, WITCH
from games.werewolf.view import WerewolfView

BOLD = 0.5
"""Share of wolves that claim a role unasked: the seer's, or another when they are accused."""
POISON_ABOVE = 0.7
SHOOT_ABOVE = 0.45
"""Probability to be a wolf from which the witch poisons and the hunter shoots."""
SHY_SPEECH, SHY_VOTE = 0.0, 0.02
"""How much more suspect a fellow must be than another seat before a wolf speaks or votes against it."""
JITTER = 1e-3
"""Breaks ties between equal seats."""


class WerewolfBot(Bot):
    """Plays every role of Werewolf."""

    version = "1"

    def __init__(self, seat: Seat, *, likelihoods: Likelihoods = FITTED) -> None:
        super().__init__(seat)
        self.view: WerewolfView
        self.belief = Belief(seat.seat, likelihoods=likelihoods)
        self.me = seat.seat
        # Fixed for the match, so that a lie once told is kept up.
        self.bold = random.Random(derive_seed(seat.seed, "style")).random() < BOLD
        self._unread: list[Event] = []

    def observe(self, events: Sequence[Event]) -> None:
        super().observe(events)
        self._unread.extend(events)

    def decide(self, turn: Turn) -> Decision:
        for event in self._unread:
            self.belief.observe(event)
        self._unread.clear()
        self._rng = self.rng()
        self._noise = [JITTER * self._rng.random() for _ in range(self.view.seats)]
        decide = _DECISIONS.get(turn.space.label)
        action = turn.space.default if decide is None else decide(self, turn.space)
        return Decision(_fitted(turn.space, action))

    @property
    def evil(self) -> bool:
        """Whether this seat is a wolf."""
        return self.view.role == WEREWOLF

    # The night

    def _wolf_talk(self, space: ActionSpace) -> Action:
        return f"Kill {self._prey()}."

    def _wolf_target(self, space: ActionSpace) -> Action:
        return str(self._prey())

    def _prey(self) -> int:
        """The seat to kill: what most of the pack said tonight, else the own choice."""
        targets = [seat for seat in self.view.alive if seat not in self.view.pack]
        told: dict[int, int] = {}
        for speech in self.view.wolf_talk:
            said = parse_speech(speech.text, self.view.seats).kill
            if speech.day == self.view.day and said in targets:
                told[speech.seat] = said
        if told:
            counts = Counter(told.values())
            return max(counts, key=lambda at: (counts[at], -min(w for w in told if told[w] == at)))
        return max(targets, key=self._danger)

    def _danger(self, seat: int) -> float:
        """How much a wolf wants a village seat dead: the seer first, hunter last, and the trusted before others."""
        claim = self.belief.claims.get(seat)
        worth = 1 - float(self.belief.public_wolf[seat]) + 3 * float(self.belief.public_seer[seat])
        if claim is not None:
            worth += {SEER: 3.0, DOCTOR: 1.0, WITCH: 1.0, HUNTER: -2.0}[claim.role]
        return worth + 200 * self._noise[seat]

    def _see(self, space: ActionSpace) -> Action:
        seen = {sight.at for sight in self.view.sights}
        chance = self.belief.wolf

        def doubt(option: str) -> float:
            p = float(chance[int(option)])
            return (-1 if int(option) in seen else p * (1 - p)) + self._noise[int(option)]

        return max(_seats(space), key=doubt)

    def _protect(self, space: ActionSpace) -> Action:
        seer, wolf = self.belief.seer, self.belief.wolf

        def worth(option: str) -> float:
            seat = int(option)
            if seat == self.me:
                return 0.35
            claimed = seat in self.belief.claims and self.belief.claims[seat].role != HUNTER
            return float(seer[seat]) * (2 if claimed else 1) - float(wolf[seat]) / 2 + 200 * self._noise[seat]

        return max(_seats(space), key=worth)

    def _potion(self, space: ActionSpace) -> Action:
        options = _options(space)
        if HEAL in options:
            return HEAL
        suspects = [seat for seat in self.view.alive if f"{POISON} {seat}" in options]
        if not suspects:
            return NONE
        worst = max(suspects, key=lambda seat: self.belief.wolf[seat] + self._noise[seat])
        wolves = self._wolves_left()
        cornered = len(self.view.alive) - 1 - wolves <= wolves
        if self.belief.wolf[worst] >= POISON_ABOVE or cornered:
            return f"{POISON} {worst}"
        return NONE

    # The day

    def _speak(self, space: ActionSpace) -> Action:
        if self.evil:
            return self._lie()
        parts = []
        if self._should_claim():
            if self.view.role == SEER:
                parts.append(_seer_claim({sight.at: sight.wolf for sight in self.view.sights}))
            elif self.view.role not in (VILLAGER, None):
                parts.append(f"I am the {self.view.role}.")
        chance = self.belief.wolf
        others = [seat for seat in self.view.alive if seat != self.me]
        parts.append(f"I suspect {max(others, key=lambda s: chance[s] + self._noise[s])}.")
        friend = min(others, key=lambda s: chance[s] + self._noise[s])
        if chance[friend] < 0.05:
            parts.append(f"I trust {friend}.")
        return " ".join(parts)

    def _should_claim(self) -> bool:
        claims = self.belief.claims
        if self.me in claims or self._accused():
            return True
        if self.view.role != SEER:
            return False
        if any(sight.wolf for sight in self.view.sights):
            return True
        if any(claim.role == SEER for claim in claims.values()):
            return True
        return len(self.view.alive) <= 2 * self._wolves_left() + 2

    def _accused(self) -> bool:
        """Whether this seat looks worst to the public, and clearly worse than before the match."""
        public = self.belief.public_wolf
        mine = public[self.me]
        prior = self.view.mix[WEREWOLF] / self.view.seats
        return bool(mine > 1.5 * prior and all(mine >= public[seat] for seat in self.view.alive))

    def _lie(self) -> str:
        pretended = self.belief.pretended
        parts = []
        victim = self._scapegoat(shy=SHY_SPEECH)
        claims = self.belief.claims
        claim = claims.get(self.me)
        rival = any(
            other.role == SEER and seat != self.me and other.results.get(self.me)
            for seat, other in claims.items()
        )
        free = SEER in self.view.mix and all(role != SEER for role in self._dead_roles())
        if claim is not None and claim.role == SEER:
            parts.append(self._false_report(dict(claim.results)))
        elif (
            claim is None and free and (rival or (self.bold and self.view.day > 1 and self._seer_unclaimed()))
        ):
            parts.append(self._false_report({}))
        elif claim is None and self._accused():
            roles = [role for role in (HUNTER, DOCTOR, WITCH) if role in self.view.mix]
            roles = [role for role in roles if role not in self._dead_roles()]
            if roles and self.bold:
                parts.append(f"I am the {self._rng.choice(roles)}.")
        parts.append(f"I suspect {victim}.")
        others = [seat for seat in self.view.alive if seat != self.me]
        trusted = min(others, key=lambda s: pretended[s] + self._noise[s])
        if pretended[trusted] < 0.05:
            parts.append(f"I trust {trusted}.")
        return " ".join(parts)

    def _seer_unclaimed(self) -> bool:
        return all(claim.role != SEER for claim in self.belief.claims.values())

    def _dead_roles(self) -> list[str]:
        return [death.role for death in self.view.deaths if death.role is not None]

    def _false_report(self, results: dict[int, bool]) -> str:
        if len(results) < self.view.day:
            rivals = [
                seat
                for seat, claim in self.belief.claims.items()
                if claim.role == SEER and seat in self.view.alive and seat not in self.view.pack
            ]
            prey = [seat for seat in self.view.alive if seat not in self.view.pack and seat not in results]
            if not rivals and not prey:
                return _seer_claim(results)
            at = rivals[0] if rivals else max(prey, key=lambda s: self.belief.pretended[s] + self._noise[s])
            results.setdefault(at, True)
        return _seer_claim(results)

    def _scapegoat(self, *, shy: float) -> int:
        """The seat a wolf speaks or votes against: whom a villager would, but for a reluctance about fellows."""
        pretended = self.belief.pretended
        heard = Counter(said.suspect for said in self._said_today().values())

        def heat(seat: int) -> float:
            mercy = shy if seat in self.view.pack else 0.0
            return float(pretended[seat]) + 0.01 * heard[seat] + self._noise[seat] - mercy

        return max((seat for seat in self.view.alive if seat != self.me), key=heat)

    def _said_today(self) -> dict[int, Said]:
        return {
            speech.seat: parse_speech(speech.text, self.view.seats)
            for speech in self.view.speeches
            if speech.day == self.view.day
        }

    def _vote(self, space: ActionSpace) -> Action:
        options = [int(option) for option in _seats(space)]
        if self.evil:
            target = self._scapegoat(shy=SHY_VOTE)
            if target in options:
                return str(target)
            others = [seat for seat in options if seat not in self.view.pack]
            if not others:
                return ABSTAIN
            return str(max(others, key=lambda s: self.belief.pretended[s] + self._noise[s]))
        chance = self.belief.wolf
        heard = Counter(said.suspect for said in self._said_today().values())
        return str(max(options, key=lambda s: chance[s] + 0.01 * heard[s] + self._noise[s]))

    def _last_words(self, space: ActionSpace) -> Action:
        if self.evil:
            return f"I suspect {self._scapegoat(shy=SHY_SPEECH)}."
        if self.view.role == SEER:
            return _seer_claim({sight.at: sight.wolf for sight in self.view.sights})
        others = [seat for seat in self.view.alive if seat != self.me]
        return f"I suspect {max(others, key=lambda s: self.belief.wolf[s] + self._noise[s])}."

    def _shoot(self, space: ActionSpace) -> Action:
        options = [int(option) for option in _seats(space)]
        worst = max(options, key=lambda s: self.belief.wolf[s] + self._noise[s])
        wolves = self._wolves_left()
        cornered = wolves >= len(self.view.alive) - wolves
        return str(worst) if self.belief.wolf[worst] >= SHOOT_ABOVE or cornered else NONE

    def _wolves_left(self) -> int:
        """Living wolves, as many as expected where the dead are not revealed."""
        return round(float(self.belief.wolf[self.view.alive].sum()))


def _seer_claim(results: dict[int, bool]) -> str:
    found = [f"{seat} is a werewolf" for seat, wolf in results.items() if wolf]
    clear = [f"{seat} is not" for seat, wolf in results.items() if not wolf]
    listed = ", ".join(found + clear)
    return f"I am the seer: {listed}." if listed else "I am the seer."


def _options(space: ActionSpace) -> tuple[str, ...]:
    return space.options if isinstance(space, Choice) else ()


def _seats(space: ActionSpace) -> list[str]:
    return [option for option in _options(space) if option.isdigit()]


def _fitted(space: ActionSpace, action: Action) -> Action:
    return str(action)[: space.max_chars] if isinstance(space, Text) else action


_DECISIONS: dict[str, Any] = {
    "wolf_talk": WerewolfBot._wolf_talk,
    "wolf_target": WerewolfBot._wolf_target,
    "see": WerewolfBot._see,
    "protect": WerewolfBot._protect,
    "potion": WerewolfBot._potion,
    "speak": WerewolfBot._speak,
    "vote": WerewolfBot._vote,
    "last_words": WerewolfBot._last_words,
    "shoot": WerewolfBot._shoot,
}
