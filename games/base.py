"""The contract of a game.

A match is one stream of events and everything else is a reading of it. A `State` takes actions and emits
`Event`s, each addressed to an audience; a `View` is the fold of the events one seat may see; a `Game` makes
both, and turns events into sentences. Seats are numbered from 0. Names of players are unknown to the rules.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from games.errors import BadOption, BadSeats, IllegalAction, MatchOver, RulesVersionMismatch
from games.rng import Chance, RecordedChance, check_seed
from games.spaces import Action, ActionSpace

Audience = tuple[int, ...] | None
"""The seats that may see an event; `EVERYONE` is also every spectator, `RECORD` is nobody at all."""

EVERYONE: Audience = None
RECORD: Audience = ()


class Event(NamedTuple):
    """Something that happened. `data` holds JSON-compatible values and is never changed after the emit."""

    kind: str
    data: dict[str, Any]
    audience: Audience = EVERYONE

    def visible_to(self, seat: int | None) -> bool:
        """Whether `seat` may see it; `None` is the public."""
        return self.audience is None or seat in self.audience


class Outcome(NamedTuple):
    """How a match ended, per seat; `returns` are in the game's own unit (±1 where a team wins or loses)."""

    reason: str
    returns: tuple[float, ...]
    teams: tuple[str, ...]
    roles: tuple[str, ...]
    turn_limit: bool = False

    def ended(self, seat: int) -> str:
        """Return `won`, `lost`, `drawn`, or `turn_limit` for a draw by the turn cap."""
        value = self.returns[seat]
        if value == 0 and self.turn_limit:
            return "turn_limit"
        return "won" if value > 0 else "lost" if value < 0 else "drawn"


class GameOptions(BaseModel):
    """Base of a game's options: immutable, unknown names refused, strings from a command line understood."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class View(ABC):
    """What a reader of the stream knows: a fold of events.

    One class per game serves bots, prompts, clients and spectators. `seat` is the seat it belongs to, or
    None for the public or the omniscient reader (who is simply fed every event). Feeding only events that
    the seat may see is the caller's part; `update` must accept any event and ignore kinds it does not know.
    """

    seat: int | None

    @abstractmethod
    def update(self, event: Event) -> None:
        """Fold one event in."""

    def asked(self, options: Any) -> tuple[int, ...]:
        """Return the seats that this reader knows to have a turn now, or to have answered in this ply.

        `options` are the match's. A seat is named only where what was fed leaves no other possibility, and only
        where whatever comes of the ply is fed to this reader too; in doubt none is named, which is the default.
        """
        return ()


class State(ABC):
    """A match in progress: pure, deterministic, total over legal actions.

    Subclasses keep immutable values or flat containers (list, dict, set) of immutable values in their
    attributes, so that `clone` can copy one level deep. They start in `_start`, act in `_apply`, and emit
    through `_emit`, `_draw` and `_shuffle`. Every accepted action must give its own seat a new event to see:
    an agent's memory is the fold of its events and nothing else.
    """

    __slots__ = ("chance", "game", "history", "options", "plies", "seats")

    def __init__(self, game: "Game", seats: int, options: Any, chance: Chance) -> None:
        self.game = game
        self.seats = seats
        self.options = options
        self.chance = chance
        self.history: list[Event] = []
        self.plies: list[dict[int, Action]] = []
        self._start()

    @abstractmethod
    def _start(self) -> None:
        """Set the attributes, deal, and emit the first events."""

    @abstractmethod
    def _apply(self, actions: Mapping[int, Action]) -> None:
        """Play legal actions, one for each seat in `turns()`."""

    @abstractmethod
    def turns(self) -> Mapping[int, ActionSpace]:
        """Map each seat that must act now to its action space; empty when the match is over."""

    @abstractmethod
    def outcome(self) -> Outcome | None:
        """Return how the match ended, or None while it goes on."""

    @abstractmethod
    def resample(self, seat: int, rng: random.Random) -> Self:
        """Return another full state consistent with all that `seat` knows.

        `seat`'s events, view and turn are the same in it; hidden facts are drawn anew (they may come out
        the same). Later chance is drawn from `rng`.
        """

    @abstractmethod
    def teams(self) -> tuple[str, ...]:
        """Return each seat's team (its side), fixed from the start and known to the record alone."""

    @abstractmethod
    def roles(self) -> tuple[str, ...]:
        """Return each seat's role, fixed from the start and known to the record alone."""

    def apply(self, actions: Mapping[int, Action]) -> list[Event]:
        """Play one ply: exactly one legal action for each seat in `turns()`. Return the new events.

        Raises `MatchOver` after the end and `IllegalAction` otherwise; the state is then unchanged.
        """
        turns = self.turns()
        if not turns:
            raise MatchOver(f"{self.game.name}: the match is over, no action is taken")
        if actions.keys() != turns.keys():
            raise IllegalAction(f"seats to act are {sorted(turns)}, actions came for {sorted(actions)}")
        for seat, space in turns.items():
            if not space.contains(actions[seat]):
                raise IllegalAction(
                    f"seat {seat}: {str(actions[seat])[:80]!r} is not {space.describe()[:200]}"
                )
        start = len(self.history)
        self.plies.append(dict(actions))
        self._apply(actions)
        return self.history[start:]

    def view(self, seat: int | None) -> Any:
        """Return `seat`'s view (None: the public's), folded from its events."""
        view = self.game.view(seat)
        for event in self.history:
            if event.visible_to(seat):
                view.update(event)
        return view

    def clone(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        for name in _all_slots(type(self)):
            value = getattr(self, name)
            if isinstance(value, list | dict | set):
                value = value.copy()
            setattr(twin, name, value)
        twin.chance = self.chance.copy()
        return twin

    def draws(self) -> list[Any]:
        """Return every chance value so far, in order, as `RecordedChance` takes them."""
        return [event.data["value"] for event in self.history if event.kind == "chance"]

    def save(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data: what was drawn and played. `Game.load` reads it back."""
        return {
            "game": self.game.name,
            "version": self.game.version,
            "seats": self.seats,
            "options": self.options.model_dump(mode="json"),
            "chance": [self.chance.seed, self.chance.count],
            "draws": self.draws(),
            "plies": [[[seat, ply[seat]] for seat in sorted(ply)] for ply in self.plies],
        }

    def _redealt(
        self, draws: Sequence[Any], plies: Sequence[Mapping[int, Action]], rng: random.Random
    ) -> Self:
        """Return the state after other draws and plies, its later chance taken from `rng` (for `resample`)."""
        state: Self = self.game.replay(draws, plies, seats=self.seats, options=self.options)
        state.chance = Chance(rng.getrandbits(63))
        return state

    def _emit(self, kind: str, data: dict[str, Any], audience: Audience = EVERYONE) -> None:
        self.history.append(Event(kind, data, audience))

    def _draw(self, of: str, n: int) -> int:
        value = self.chance.draw(n)
        self.history.append(Event("chance", {"of": of, "value": value}, RECORD))
        return value

    def _shuffle(self, of: str, n: int) -> list[int]:
        value = self.chance.order(n)
        self.history.append(Event("chance", {"of": of, "value": value}, RECORD))
        return value


def _all_slots(kind: type) -> tuple[str, ...]:
    names = _SLOTS.get(kind)
    if names is None:
        names = tuple(name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))
        _SLOTS[kind] = names
    return names


_SLOTS: dict[type, tuple[str, ...]] = {}


class Game(ABC):
    """A game: what it is called, who plays it, and how its states and views are made. Instances hold nothing."""

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    """Version of the rules; a record verifies only under the version it was made with."""
    seats: ClassVar[tuple[int, int]]
    """Fewest and most seats."""
    default_seats: ClassVar[int]
    team_names: ClassVar[tuple[str, ...]]
    """The sides, first the one that the fitted side effect speaks of."""
    sides_differ: ClassVar[bool] = True
    """Whether the sides differ in more than their names; only then can one of them have an advantage."""
    role_names: ClassVar[tuple[str, ...]]
    simultaneous: ClassVar[bool]
    """Whether several seats may have a turn at once."""
    rules: ClassVar[str]
    """The rules as text, for people and prompts; names the source."""
    options_type: ClassVar[type[GameOptions]]
    state_type: ClassVar[type[State]]
    view_type: ClassVar[type[View]]

    @abstractmethod
    def max_plies(self, seats: int, options: Any) -> int:
        """Return a number of plies that no match exceeds."""

    @abstractmethod
    def narrate(self, event: Event) -> str | None:
        """Return the event as one sentence for a reader who may see it, or None where there is nothing to say.

        Speech is quoted through `games.text.quote`, so that it cannot imitate another line.
        """

    @property
    def unlike_sides(self) -> tuple[str, ...]:
        """The sides that may have an advantage: none where they differ by name alone."""
        return self.team_names if self.sides_differ else ()

    def check(self, seats: int, options: Any) -> None:
        """Raise `BadOption` or `BadSeats` where a set-up breaks a rule; `new` calls it. By default all is allowed."""
        return

    def state_for(self, options: Any) -> type[State]:
        """Return the class of a match with these options; by default `state_type`, whatever they are."""
        return self.state_type

    def view(self, seat: int | None) -> View:
        """Return an empty view for `seat` (None: the public or the omniscient reader)."""
        return self.view_type(seat)  # type: ignore[call-arg]

    def parse_options(self, options: Mapping[str, Any] | GameOptions | None) -> GameOptions:
        """Return validated options; strings are understood. Raises `BadOption` in one line."""
        if isinstance(options, GameOptions):
            return options
        if not options:
            return _default_options(self.options_type)
        try:
            return self.options_type.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "options"
            if first["type"] == "extra_forbidden":
                allowed = ", ".join(self.options_type.model_fields) or "none"
                raise BadOption(f"{self.name} option {name!r}: unknown, allowed are: {allowed}") from None
            got = repr(first.get("input"))
            message = str(first["msg"]).removeprefix("Value error, ").replace("Input should", "it should", 1)
            raise BadOption(f"{self.name} option {name}: got {got[:80]}; {message}") from None

    def new(
        self,
        *,
        seed: int = 0,
        seats: int | None = None,
        options: Mapping[str, Any] | GameOptions | None = None,
    ) -> Any:
        """Return a fresh state.

        Args:
            seed: 0 … 2**63 - 1; the same seed gives the same chance, whatever else runs in the process.
            seats: number of seats, within `self.seats`; None is `default_seats`.
            options: by name, or already parsed.

        Raises `BadSeed`, `BadSeats` or `BadOption`.
        """
        return self.start(Chance(check_seed(seed)), seats=seats, options=options)

    def start(
        self,
        chance: Chance,
        *,
        seats: int | None = None,
        options: Mapping[str, Any] | GameOptions | None = None,
    ) -> Any:
        """Return a fresh state on a given chance source; see `new`."""
        count = self.default_seats if seats is None else seats
        low, high = self.seats
        if isinstance(count, bool) or not isinstance(count, int) or not low <= count <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            raise BadSeats(f"{self.name} seats: got {count}, {self.title} is played by {allowed}")
        parsed = self.parse_options(options)
        self.check(count, parsed)
        return self.state_for(parsed)(self, count, parsed, chance)

    def replay(
        self,
        draws: Sequence[Any],
        plies: Sequence[Mapping[int, Action]],
        *,
        seats: int,
        options: Mapping[str, Any] | GameOptions | None = None,
    ) -> Any:
        """Return the state after the given draws and plies.

        Raises `BadChance`, `ChanceNeeded` or `IllegalAction` where they do not fit.
        """
        state = self.start(RecordedChance(draws), seats=seats, options=options)
        for actions in plies:
            state.apply(actions)
        return state

    def load(self, saved: Mapping[str, Any]) -> Any:
        """Return the state that `State.save` wrote, with its chance source going on where it stood."""
        if (saved["game"], saved["version"]) != (self.name, self.version):
            raise RulesVersionMismatch(
                f"saved under {saved['game']} {saved['version']}, installed is {self.name} {self.version}"
            )
        plies = [
            {seat: tuple(action) if isinstance(action, list) else action for seat, action in ply}
            for ply in saved["plies"]
        ]
        state = self.replay(saved["draws"], plies, seats=saved["seats"], options=saved["options"])
        seed, count = saved["chance"]
        state.chance = Chance(seed, count)
        return state


def _default_options(kind: type[GameOptions]) -> GameOptions:
    options = _DEFAULTS.get(kind)
    if options is None:
        options = _DEFAULTS[kind] = kind()
    return options


_DEFAULTS: dict[type[GameOptions], GameOptions] = {}
