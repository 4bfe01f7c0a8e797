"""What a tiny model is made from: which games or task worlds, and how good those are whom it clones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.curriculum.makers import maker_for
from agents.errors import BadModel
from games.registry import load_game

GAMES = ("avalon", "werewolf", "kuhn")
"""That can be cloned; together, in proportions of their own, the embedded model's."""
WORLDS = ("grid", "text")
"""Of tasks whose attempts can be cloned."""


@dataclass(frozen=True, slots=True)
class Source:
    """A game, or a world of tasks.

    Args:
        name: of the game or world.
        seats: at a game, all its matches have so many, by one set of options; by default every size and many mixes
            of rules.
        skills: of the tasks; by default all that the world has.
    """

    name: str
    seats: int | None = None
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mixture:
    """What is learned from.

    Args:
        sources: in equal numbers of matches and attempts; none stands for the games of the embedded model, in its
            proportions.
        random: share of the seats, and of the attempts at tasks, that random bots play and that are learned from.
        options: of the games whose seats are given; by default the game's own.

    Raises `BadModel` for a share that is none, a name that comes twice, and options without such a game, and a
    `GameError` for options that one of them does not have.
    """

    sources: tuple[Source, ...] = ()
    random: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.random <= 1:
            raise BadModel(f"--random-share: got {self.random:g}, 0 to 1 is allowed")
        names = [source.name for source in self.sources]
        if twice := [name for name in names if names.count(name) > 1]:
            raise BadModel(f"--game: {twice[0]} comes twice, and its matches would be the same")
        sized = [source for source in self.sources if source.seats is not None]
        if self.options and not sized:
            raise BadModel(
                f"--option: got {next(iter(self.options))}, but no game is named with its seats (avalon:5)"
            )
        for source in sized:
            load_game(source.name).new(seed=0, seats=source.seats, options=self.options)

    @property
    def names(self) -> tuple[str, ...]:
        """The games and worlds, each once."""
        return tuple(dict.fromkeys(source.name for source in self.sources)) or GAMES


def parse_source(text: str) -> Source:
    """Read `GAME`, `GAME:SEATS`, `WORLD` or `WORLD:SKILL,SKILL`. Raises `BadModel` in one line."""
    name, colon, rest = text.strip().partition(":")
    if name in WORLDS:
        return Source(name, skills=_skills(text, name, rest.split(",")) if colon else ())
    if name not in GAMES:
        raise BadModel(f"--game: got {text[:60]!r}, allowed are {', '.join((*GAMES, *WORLDS))}")
    if not colon:
        return Source(name)
    least, most = load_game(name).seats
    if not (rest.isascii() and rest.isdigit() and least <= int(rest) <= most):
        allowed = f"{least}" if least == most else f"{least} to {most}"
        raise BadModel(f"--game: got {text[:60]!r}, {name} has {allowed} seats")
    return Source(name, seats=int(rest))


def _skills(text: str, world: str, given: Sequence[str]) -> tuple[str, ...]:
    known = maker_for(world).skills
    if unknown := [skill for skill in given if skill not in known]:
        raise BadModel(
            f"--game: got {text[:60]!r}, {unknown[0]!r} is no skill there; they are {', '.join(known)}"
        )
    return tuple(dict.fromkeys(given))
