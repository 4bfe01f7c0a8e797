"""A Werewolf match in progress: the deal, the nights, the days, and how it ends."""

import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Self, cast

from games.base import Outcome, State
from games.spaces import Action, ActionSpace, Choice, Text
from games.werewolf.resample import resample
from games.werewolf.setup import (
    ABSTAIN,
    DOCTOR,
    HEAL,
    HUNTER,
    LAST_WORDS,
    NIGHT,
    NONE,
    OVER,
    POISON,
    POTION,
    SEER,
    SHOOT,
    SPEAK,
    TURN_LIMIT,
    VILLAGE,
    VOTE,
    WEREWOLF,
    WITCH,
    WOLF_PARITY,
    WOLF_TALK,
    WOLVES,
    WOLVES_DEAD,
    deck,
    max_days,
    role_mix,
)


@lru_cache(maxsize=4096)
def seats_in(mask: int) -> tuple[int, ...]:
    """Return the seats whose bits are set, in order."""
    return tuple(seat for seat in range(mask.bit_length()) if mask >> seat & 1)


@lru_cache(maxsize=8192)
def _pick(label: str, mask: int, first: str | None = None) -> Choice:
    seats = tuple(map(str, seats_in(mask)))
    return Choice(seats if first is None else (first, *seats), label)


@lru_cache(maxsize=8192)
def _potion(mask: int, heal: bool, poison: bool) -> Choice:
    poisons = tuple(f"{POISON} {seat}" for seat in seats_in(mask)) if poison else ()
    return Choice((NONE, *([HEAL] if heal else ()), *poisons), POTION)


_text = lru_cache(maxsize=256)(Text)


def _named_most(named: list[int]) -> list[int]:
    """Return the seats that were named most often, in order; nobody where nobody was named."""
    times: dict[int, int] = {}
    for seat in named:
        times[seat] = times.get(seat, 0) + 1
    most = max(times.values(), default=0)
    return sorted([seat for seat, count in times.items() if count == most])


class WerewolfState(State):
    """One match. Sets of seats are bit masks; a special role without a seat has seat -1."""

    __slots__ = (
        "after_shot",
        "alive",
        "day",
        "doctor",
        "doomed",
        "heal",
        "hunter",
        "open",
        "phase",
        "poison",
        "protected",
        "queue",
        "reason",
        "role_of",
        "runoff",
        "seer",
        "talks_left",
        "target",
        "team_of",
        "witch",
        "wolves",
    )

    def _start(self) -> None:
        cards = deck(self.seats, self.options)
        order = self._shuffle("roles", self.seats)
        self.role_of: tuple[str, ...] = tuple([cards[card] for card in order])
        self.team_of = tuple([WOLVES if role == WEREWOLF else VILLAGE for role in self.role_of])
        self.wolves = sum([1 << seat for seat, role in enumerate(self.role_of) if role == WEREWOLF])
        self.seer = self._seat_of(SEER)
        self.doctor = self._seat_of(DOCTOR)
        self.hunter = self._seat_of(HUNTER)
        self.witch = self._seat_of(WITCH)
        self.alive = (1 << self.seats) - 1
        self.day = 0
        self.heal = self.poison = True
        self.protected = -1
        self.target = -1
        self.doomed = -1
        self.after_shot = NIGHT
        self.runoff = False
        self.talks_left = 0
        self.queue: tuple[int, ...] = ()
        self.reason: str | None = None
        self.open: dict[int, ActionSpace] = {}
        self._emit("start", {"seats": self.seats, "mix": role_mix(self.seats, self.options)})
        for seat, role in enumerate(self.role_of):
            self._emit("role", {"seat": seat, "role": role}, (seat,))
        pack = seats_in(self.wolves)
        self._emit("pack", {"seats": list(pack)}, pack)
        self._nightfall()

    def turns(self) -> Mapping[int, ActionSpace]:
        return self.open

    def outcome(self) -> Outcome | None:
        if self.reason is None:
            return None
        limit = self.reason == TURN_LIMIT
        return Outcome(self.reason, tuple(self._returns()), self.team_of, self.role_of, limit)

    def teams(self) -> tuple[str, ...]:
        return self.team_of

    def roles(self) -> tuple[str, ...]:
        return self.role_of

    def resample(self, seat: int, rng: random.Random) -> Self:
        return cast("Self", resample(self, seat, rng))

    def _apply(self, actions: Mapping[int, Action]) -> None:
        _PLAY[self.phase](self, actions)

    # The night

    def _nightfall(self) -> None:
        self.day += 1
        self._emit("night", {"day": self.day})
        pack = self.wolves & self.alive
        # A lone wolf has nobody to talk to, but only where everyone knows him to be alone may it show.
        alone = self.options.reveal and pack & (pack - 1) == 0
        self.talks_left = 0 if alone else self.options.wolf_talk_rounds
        self._open_night()

    def _open_night(self) -> None:
        pack = self.wolves & self.alive
        if self.talks_left:
            self.phase = WOLF_TALK
            talk = self._text(WOLF_TALK)
            self.open = dict.fromkeys(seats_in(pack), talk)
            return
        self.phase = NIGHT
        target = _pick("wolf_target", self.alive & ~pack)
        self.open = dict.fromkeys(seats_in(pack), target)
        if self._lives(self.seer):
            self.open[self.seer] = _pick("see", self.alive & ~(1 << self.seer))
        if self._lives(self.doctor):
            allowed = self.alive
            if not self.options.doctor_self:
                allowed &= ~(1 << self.doctor)
            if self.protected >= 0 and not self.options.doctor_repeat:
                allowed &= ~(1 << self.protected)
            self.open[self.doctor] = _pick("protect", allowed)

    def _play_wolf_talk(self, actions: Mapping[int, Action]) -> None:
        pack = tuple(self.open)
        for seat in pack:
            self._emit("wolf_talk", {"seat": seat, "text": actions[seat]}, pack)
        self.talks_left -= 1
        self._open_night()

    def _play_night(self, actions: Mapping[int, Action]) -> None:
        self.target = self._hunt(actions)
        if self._lives(self.seer):
            at = int(actions[self.seer])  # type: ignore[arg-type]
            wolf = bool(self.wolves >> at & 1)
            self._emit("see", {"seat": self.seer, "at": at, "wolf": wolf}, (self.seer,))
        self.protected = -1
        if self._lives(self.doctor):
            self.protected = int(actions[self.doctor])  # type: ignore[arg-type]
            self._emit("protect", {"seat": self.doctor, "at": self.protected}, (self.doctor,))
        if self._lives(self.witch):
            self._emit("attack", {"seat": self.witch, "at": self.target}, (self.witch,))
            others = self.alive & ~(1 << self.witch)
            self._open_potion(_potion(others, self.heal, self.poison))
        elif self.witch >= 0 and not self.options.reveal:
            # Nobody may read from the length of a night that she is dead, so she is asked, for nothing.
            self._open_potion(_potion(0, False, False))
        else:
            self._dawn(NONE, None)

    def _open_potion(self, space: Choice) -> None:
        self.phase = POTION
        self.open = {self.witch: space}

    def _hunt(self, actions: Mapping[int, Action]) -> int:
        pack = seats_in(self.wolves & self.alive)
        votes = [[wolf, int(actions[wolf])] for wolf in pack]  # type: ignore[arg-type]
        top = _named_most([at for _, at in votes])
        target = top[0] if len(top) == 1 else top[self._draw("wolf tie", len(top))]
        self._emit("wolf_target", {"votes": votes, "at": target}, pack)
        return target

    def _play_potion(self, actions: Mapping[int, Action]) -> None:
        use, _, at = str(actions[self.witch]).partition(" ")
        drunk = self.target if use == HEAL else int(at) if at else None
        self._emit("potion", {"seat": self.witch, "use": use, "at": drunk}, (self.witch,))
        self.heal = self.heal and use != HEAL
        self.poison = self.poison and use != POISON
        self._dawn(use, drunk)

    def _dawn(self, use: str, drunk: int | None) -> None:
        dead = set()
        if self.target != self.protected and use != HEAL:
            dead.add(self.target)
        poisoned = drunk if use == POISON else None
        if poisoned is not None:
            dead.add(poisoned)
        for seat in dead:
            self.alive &= ~(1 << seat)
        self._emit("dawn", {"day": self.day, "dead": [[seat, self._shown(seat)] for seat in sorted(dead)]})
        if self.hunter in dead and poisoned != self.hunter:
            self._last_shot(SPEAK)
        else:
            self._settle(SPEAK)

    # The day

    def _daybreak(self) -> None:
        first = (self.day - 1) % self.seats
        living = seats_in(self.alive)
        order = [seat for seat in living if seat >= first] + [seat for seat in living if seat < first]
        self.queue = tuple(order * self.options.speech_rounds)
        self._open_day()

    def _open_day(self) -> None:
        if self.queue:
            self.phase = SPEAK
            self.open = {self.queue[0]: self._text(SPEAK)}
        else:
            self.runoff = False
            self._open_vote(self.alive)

    def _open_vote(self, mask: int) -> None:
        self.phase = VOTE
        self.open = {seat: _pick(VOTE, mask & ~(1 << seat), ABSTAIN) for seat in seats_in(self.alive)}

    def _play_speak(self, actions: Mapping[int, Action]) -> None:
        seat = self.queue[0]
        self._emit("speech", {"seat": seat, "text": actions[seat]})
        self.queue = self.queue[1:]
        self._open_day()

    def _play_vote(self, actions: Mapping[int, Action]) -> None:
        votes = [
            [seat, None if (action := actions[seat]) == ABSTAIN else int(action)]  # type: ignore[arg-type]
            for seat in self.open
        ]
        top = _named_most([at for _, at in votes if at is not None])
        out = top[0] if len(top) == 1 else None
        data: dict[str, Any] = {"votes": votes, "out": out}
        if len(top) > 1:
            data["tied"] = top
        if self.runoff:
            data["runoff"] = True
        self._emit("vote", data)
        if out is not None:
            self.doomed = out
            self.phase = LAST_WORDS
            self.open = {out: self._text(LAST_WORDS)}
        elif top and self.options.ties == "runoff" and not self.runoff:
            self.runoff = True
            self._open_vote(sum([1 << seat for seat in top]))
        else:
            self._settle(NIGHT)

    def _play_last_words(self, actions: Mapping[int, Action]) -> None:
        seat = self.doomed
        self._emit("last_words", {"seat": seat, "text": actions[seat]})
        self.alive &= ~(1 << seat)
        self._emit("out", {"seat": seat, "role": self._shown(seat)})
        if seat == self.hunter:
            self._last_shot(NIGHT)
        else:
            self._settle(NIGHT)

    # Deaths and the end

    def _last_shot(self, then: str) -> None:
        if not self.wolves & self.alive:
            self._settle(then)
            return
        self.phase = SHOOT
        self.doomed = self.hunter
        self.open = {self.hunter: _pick(SHOOT, self.alive, NONE)}
        self.after_shot = then

    def _play_shoot(self, actions: Mapping[int, Action]) -> None:
        action = str(actions[self.hunter])
        if action == NONE:
            self._emit("shot", {"seat": self.hunter, "at": None})
        else:
            at = int(action)
            self.alive &= ~(1 << at)
            self._emit("shot", {"seat": self.hunter, "at": at, "role": self._shown(at)})
        self._settle(self.after_shot)

    def _settle(self, then: str) -> None:
        """End the match if it is decided, else go on to the day (`SPEAK`) or the next night."""
        wolves = (self.wolves & self.alive).bit_count()
        others = self.alive.bit_count() - wolves
        armed = self._lives(self.hunter) or (self.poison and self._lives(self.witch))
        if not wolves:
            self._end(WOLVES_DEAD)
        elif wolves > others or (wolves == others and not armed):
            self._end(WOLF_PARITY)
        elif then == SPEAK:
            self._daybreak()
        elif self.day >= max_days(self.seats, self.options):
            self._end(TURN_LIMIT)
        else:
            self._nightfall()

    def _end(self, reason: str) -> None:
        self.reason = reason
        self.phase = OVER
        self.open = {}
        data = {
            "reason": reason,
            "returns": self._returns(),
            "roles": list(self.role_of),
            "teams": list(self.team_of),
        }
        self._emit("end", data)

    def _returns(self) -> list[float]:
        if self.reason == TURN_LIMIT:
            return [0.0] * self.seats
        winner = VILLAGE if self.reason == WOLVES_DEAD else WOLVES
        return [1.0 if team == winner else -1.0 for team in self.team_of]

    def _seat_of(self, role: str) -> int:
        return self.role_of.index(role) if role in self.role_of else -1

    def _lives(self, seat: int) -> bool:
        return seat >= 0 and bool(self.alive >> seat & 1)

    def _shown(self, seat: int) -> str | None:
        return self.role_of[seat] if self.options.reveal else None

    def _text(self, label: str) -> Text:
        return _text(self.options.max_speech_chars, label)


_PLAY: dict[str, Callable[[WerewolfState, Mapping[int, Action]], None]] = {
    WOLF_TALK: WerewolfState._play_wolf_talk,
    NIGHT: WerewolfState._play_night,
    POTION: WerewolfState._play_potion,
    SPEAK: WerewolfState._play_speak,
    VOTE: WerewolfState._play_vote,
    LAST_WORDS: WerewolfState._play_last_words,
    SHOOT: WerewolfState._play_shoot,
}
