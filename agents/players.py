"""Players by name: what `NAME=SPEC` on a command line means, and how an agent is made from it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from agents.base import Agent, Seat
from agents.errors import BadPlayer, PlayerCannotPlay, PlayerNotAvailable
from agents.policy.spec import OPENAI, POLICY, is_policy, parse_spec
from games.registry import game_names
from games.text import clean_name

EVERY_GAME = "*"
_SKILL = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?")


@dataclass(frozen=True, slots=True)
class PlayerKind:
    """A kind of player that can be seated, with the bot for each game it plays (`*`: for every game)."""

    spec: str
    title: str
    bots: dict[str, str]
    skilled: bool = False
    """Whether a number from 0 to 1 may follow after a colon: its bots' `skill`."""

    def games(self) -> list[str]:
        """Return the names of the installed games it plays."""
        return [name for name in game_names() if EVERY_GAME in self.bots or name in self.bots]


KINDS = {
    kind.spec: kind
    for kind in (
        PlayerKind(
            "random", "any legal action, each as likely", {EVERY_GAME: "agents.bots.random:RandomBot"}
        ),
        PlayerKind(
            "scripted",
            "reasons by the rules of the game it plays",
            {
                "avalon": "agents.bots.avalon:AvalonBot",
                "werewolf": "agents.bots.werewolf:WerewolfBot",
                "kuhn": "agents.bots.kuhn:EquilibriumBot",
                "forge": "agents.bots.forge:ScriptedBot",
            },
        ),
        PlayerKind("equilibrium", "plays a Nash equilibrium", {"kuhn": "agents.bots.kuhn:EquilibriumBot"}),
        PlayerKind(
            "planner",
            "plans its way through tasks; planner:0.6 follows its plan at six steps of ten",
            {"forge": "agents.bots.forge:PlannerBot"},
            skilled=True,
        ),
    )
}
"""Bots: what can be seated anywhere, by itself."""

MODELS = {
    kind.spec: kind
    for kind in (
        PlayerKind(
            POLICY,
            "a language model on this machine; policy:ADAPTER is one of its adapters",
            {EVERY_GAME: "agents.policy.agent:PolicyAgent"},
        ),
        PlayerKind(
            OPENAI,
            "a language model of a server, as openai:MODEL@URL",
            {EVERY_GAME: "agents.policy.agent:PolicyAgent"},
        ),
    )
}
"""Players that share a model between seats and matches: `agents.policy.service.Policies` makes their agents."""

NOT_YET = ("ws",)
"""Words that are specs in the language of players, and that this version cannot seat."""

HUMAN = "human"
"""A person. No agent stands for one: whoever seats people knows the word before it comes here."""


@dataclass(frozen=True, slots=True)
class Player:
    """A named player: `name` as it is shown, `spec` as it was written."""

    name: str
    spec: str


def parse_player(text: str) -> Player:
    """Return the player that `NAME=SPEC` or `SPEC` stands for; without a name it is called as its spec.

    Raises `BadPlayer` or `PlayerNotAvailable`.
    """
    head = text.partition(":")[0].partition("=")[0].strip()
    name, equals, spec = text.partition("=")
    if not equals or (head in (*NOT_YET, *MODELS) and text.strip().startswith(f"{head}:")):
        name = spec = text
    spec = spec.strip()
    _kind(spec)
    shown = clean_name(name)
    if not shown:
        raise BadPlayer(f"player name: got {name[:40]!r}, a name of 1 or more visible characters is needed")
    return Player(shown, spec)


def parse_players(texts: Iterable[str]) -> list[Player]:
    """Return several players; raises `BadPlayer` where two would be shown under one name."""
    players = [parse_player(text) for text in texts]
    seen: dict[str, Player] = {}
    for player in players:
        if player.name in seen:
            raise BadPlayer(
                f"player name: {player.name!r} is used twice; give each player a name of its own, "
                f"as in a={player.spec[:40]}"
            )
        seen[player.name] = player
    return players


def check_plays(player: Player, *, game: str) -> None:
    """Raise `PlayerCannotPlay` where `player` does not play `game`."""
    kind = _kind(player.spec)
    if EVERY_GAME not in kind.bots and game not in kind.bots:
        every = (*KINDS.values(), *MODELS.values())
        others = [other.spec for other in every if EVERY_GAME in other.bots or game in other.bots]
        who = player.spec if player.name == player.spec else f"{player.name}={player.spec}"
        raise PlayerCannotPlay(
            f"player {who}: {player.spec} plays {', '.join(kind.games())}, not {game}; "
            f"{game} is played by {', '.join(others)}"
        )


def agent_type(spec: str, *, game: str) -> type[Agent]:
    """Return the class of bots that plays `game` for `spec`. Raises a `PlayerError`."""
    check_plays(Player(spec, spec), game=game)
    if is_policy(spec):
        raise PlayerNotAvailable(
            f"player {spec[:80]!r}: a language model plays in `arena play`, `arena tournament` and `arena join`, "
            f"not here; available are {', '.join(KINDS)}"
        )
    bots = _kind(spec).bots
    module, _, attribute = bots.get(game, bots.get(EVERY_GAME, "")).partition(":")
    made: type[Agent] = getattr(import_module(module), attribute)
    return made


def make_agent(spec: str, seat: Seat) -> Agent:
    """Return a fresh bot of kind `spec` at `seat`. Raises a `PlayerError`."""
    factory: Callable[[Seat], Agent] = agent_type(spec, game=seat.game.name)
    agent = factory(seat)
    _, colon, skill = spec.partition(":")
    if colon:
        agent.skill = float(skill)  # type: ignore[attr-defined]
        agent.version = f"{agent.version} (skill {agent.skill:g})"  # type: ignore[attr-defined]
    return agent


def _kind(spec: str) -> PlayerKind:
    word, _, rest = spec.partition(":")
    if word in NOT_YET:
        raise PlayerNotAvailable(
            f"player {spec[:80]!r}: {word} players are not in this version; available are {', '.join(KINDS)}"
        )
    if word == HUMAN:
        raise PlayerNotAvailable(
            f"player {spec[:80]!r}: a person plays with `arena join` or at one seat of `arena play`, not here; "
            f"available are {', '.join(KINDS)}"
        )
    if word in MODELS:
        parse_spec(spec)
        return MODELS[word]
    if word not in KINDS:
        allowed = ", ".join((*KINDS, *MODELS))
        raise BadPlayer(f"player: got {spec[:80]!r}, allowed are {allowed} (or NAME=SPEC)")
    if KINDS[word].skilled and spec != word:
        if not _SKILL.fullmatch(rest):
            raise BadPlayer(
                f"player: got {spec[:80]!r}, after {word}: a skill from 0 to 1 is needed, as in {word}:0.6"
            )
        return KINDS[word]
    if rest or spec != word:
        raise BadPlayer(f"player: got {spec[:80]!r}, {word} takes nothing after a colon")
    return KINDS[word]
