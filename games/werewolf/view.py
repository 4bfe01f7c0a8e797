"""What a reader of a Werewolf match knows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from games.base import Event, View
from games.werewolf.setup import HUNTER, WEREWOLF


class Speech(NamedTuple):
    """Words of one seat. `day` is the day, or the night before it."""

    day: int
    seat: int
    text: str


class Vote(NamedTuple):
    """A day's vote as revealed: by voter the seat voted for, None for an abstention."""

    day: int
    votes: dict[int, int | None]
    out: int | None
    tied: tuple[int, ...]
    runoff: bool


class Death(NamedTuple):
    """A seat that left. `cause` is `night`, `vote` or `shot`; `role` is None where it was not revealed."""

    day: int
    seat: int
    cause: str
    role: str | None


class Hunt(NamedTuple):
    """The wolves' choice of a night: by wolf the seat named, and the seat attacked."""

    day: int
    votes: dict[int, int]
    at: int


class Sight(NamedTuple):
    """What the seer (`seat`) learned of `at`."""

    day: int
    seat: int
    at: int
    wolf: bool


class Deed(NamedTuple):
    """Something `seat` did to, or learned of, seat `at` (None: nobody). `what` names it."""

    day: int
    seat: int
    what: str
    at: int | None


# All seats at a table keep the same public facts, so their views share them.
_speech = lru_cache(maxsize=256)(Speech)
_death = lru_cache(maxsize=256)(Death)


@dataclass(slots=True)
class WerewolfView(View):
    """What a reader knows: the public course of the match, and the private part that was fed.

    For one seat `sights`, `protections`, `attacks` and `potions` hold that seat's own nights alone; the
    omniscient reader, fed with everything, finds all seats' in them.
    """

    seat: int | None
    seats: int = 0
    mix: dict[str, int] = field(default_factory=dict)
    """Seats per role, public from the start."""
    day: int = 0
    phase: str = "night"
    """`night`, `day` or `over`."""
    alive: list[int] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)
    """Roles known: the own, the pack's for a wolf, those revealed at death, all at the end."""
    deaths: list[Death] = field(default_factory=list)
    speeches: list[Speech] = field(default_factory=list)
    last_words: list[Speech] = field(default_factory=list)
    votes: list[Vote] = field(default_factory=list)
    shots: list[Deed] = field(default_factory=list)
    wolf_talk: list[Speech] = field(default_factory=list)
    hunts: list[Hunt] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    protections: list[Deed] = field(default_factory=list)
    attacks: list[Deed] = field(default_factory=list)
    """Whom the wolves attacked, as the witch was told."""
    potions: list[Deed] = field(default_factory=list)
    """What the witch did each night: `none`, `heal` or `poison`."""
    reason: str | None = None
    returns: tuple[float, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.reason is not None

    @property
    def role(self) -> str | None:
        """The own role; None for a reader without a seat."""
        return None if self.seat is None else self.roles.get(self.seat)

    @property
    def pack(self) -> list[int]:
        """The seats known to be werewolves."""
        return sorted(seat for seat, role in self.roles.items() if role == WEREWOLF)

    @property
    def heal_left(self) -> bool:
        """Whether the healing potion is left, as far as this reader saw."""
        return all(deed.what != "heal" for deed in self.potions)

    @property
    def poison_left(self) -> bool:
        """Whether the poison is left, as far as this reader saw."""
        return all(deed.what != "poison" for deed in self.potions)

    def update(self, event: Event) -> None:
        kind, data, _ = event
        if kind == "speech":  # half of all events, so it takes the short way
            self.speeches.append(_speech(self.day, data["seat"], data["text"]))
        elif kind in _FOLDS:
            _FOLDS[kind](self, data)

    def asked(self, options: Any) -> tuple[int, ...]:
        """Return the seats whose turn it is by day; who acts at night is nobody's to know."""
        if self.phase != "day":
            return ()
        if self.votes and self.votes[-1].day == self.day:
            return self._asked_after(self.votes[-1], options)
        spoken = sum(speech.day == self.day for speech in self.speeches)
        if not spoken and self._may_shoot_at_dawn():
            return ()
        if spoken == len(self.alive) * options.speech_rounds:
            return tuple(self.alive)
        first = (self.day - 1) % self.seats
        order = sorted(self.alive, key=lambda seat: (seat < first, seat))
        return (order[spoken % len(order)],)

    def _asked_after(self, vote: Vote, options: Any) -> tuple[int, ...]:
        if vote.out is None:
            again = bool(vote.tied) and not vote.runoff and options.ties == "runoff"
            return tuple(self.alive) if again else ()
        if vote.out in self.alive:
            return (vote.out,)
        return (vote.out,) if self.roles.get(vote.out) == HUNTER else ()

    def _may_shoot_at_dawn(self) -> bool:
        """Whether a hunter may be choosing now: who was poisoned does not, and only the witch knows of it."""
        dead = {death.role for death in self.deaths if death.day == self.day and death.cause == "night"}
        shot = any(deed.day == self.day for deed in self.shots)
        return bool(self.mix.get(HUNTER)) and not shot and not dead.isdisjoint({HUNTER, None})

    def _start(self, data: dict[str, Any]) -> None:
        self.seats = data["seats"]
        self.mix = dict(data["mix"])
        self.alive = list(range(self.seats))

    def _role(self, data: dict[str, Any]) -> None:
        self.roles[data["seat"]] = data["role"]

    def _pack(self, data: dict[str, Any]) -> None:
        for seat in data["seats"]:
            self.roles[seat] = WEREWOLF

    def _night(self, data: dict[str, Any]) -> None:
        self.day = data["day"]
        self.phase = "night"

    def _wolf_talk(self, data: dict[str, Any]) -> None:
        self.wolf_talk.append(_speech(self.day, data["seat"], data["text"]))

    def _wolf_target(self, data: dict[str, Any]) -> None:
        self.hunts.append(Hunt(self.day, dict(data["votes"]), data["at"]))

    def _see(self, data: dict[str, Any]) -> None:
        self.sights.append(Sight(self.day, data["seat"], data["at"], data["wolf"]))

    def _protect(self, data: dict[str, Any]) -> None:
        self.protections.append(Deed(self.day, data["seat"], "protect", data["at"]))

    def _attack(self, data: dict[str, Any]) -> None:
        self.attacks.append(Deed(self.day, data["seat"], "attack", data["at"]))

    def _potion(self, data: dict[str, Any]) -> None:
        self.potions.append(Deed(self.day, data["seat"], data["use"], data["at"]))

    def _dawn(self, data: dict[str, Any]) -> None:
        self.phase = "day"
        for seat, role in data["dead"]:
            self._bury(seat, "night", role)

    def _vote(self, data: dict[str, Any]) -> None:
        votes = dict(data["votes"])
        tied = tuple(data.get("tied", ()))
        self.votes.append(Vote(self.day, votes, data["out"], tied, data.get("runoff", False)))

    def _last_words(self, data: dict[str, Any]) -> None:
        self.last_words.append(_speech(self.day, data["seat"], data["text"]))

    def _out(self, data: dict[str, Any]) -> None:
        self._bury(data["seat"], "vote", data["role"])

    def _shot(self, data: dict[str, Any]) -> None:
        self.shots.append(Deed(self.day, data["seat"], "shot", data["at"]))
        if data["at"] is not None:
            self._bury(data["at"], "shot", data["role"])

    def _end(self, data: dict[str, Any]) -> None:
        self.phase = "over"
        self.reason = data["reason"]
        self.returns = tuple(data["returns"])
        self.roles = dict(enumerate(data["roles"]))

    def _bury(self, seat: int, cause: str, role: str | None) -> None:
        self.alive.remove(seat)
        self.deaths.append(_death(self.day, seat, cause, role))
        if role is not None:
            self.roles[seat] = role


_FOLDS: dict[str, Callable[[WerewolfView, dict[str, Any]], None]] = {
    "start": WerewolfView._start,
    "role": WerewolfView._role,
    "pack": WerewolfView._pack,
    "night": WerewolfView._night,
    "wolf_talk": WerewolfView._wolf_talk,
    "wolf_target": WerewolfView._wolf_target,
    "see": WerewolfView._see,
    "protect": WerewolfView._protect,
    "attack": WerewolfView._attack,
    "potion": WerewolfView._potion,
    "dawn": WerewolfView._dawn,
    "vote": WerewolfView._vote,
    "last_words": WerewolfView._last_words,
    "out": WerewolfView._out,
    "shot": WerewolfView._shot,
    "end": WerewolfView._end,
}
