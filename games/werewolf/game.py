"""Werewolf, the game: its rules in words, and its events as sentences.

Sources: Dimitry Davidoff, "Mafia" (1986); Andrew Plotkin, "Werewolf" (1997); hunter and witch after Philippe
des Pallières and Hervé Marly, "Les Loups-Garous de Thiercelieux" (2001).
"""

from collections.abc import Callable
from typing import Any

from games.base import Event, Game
from games.text import quote
from games.werewolf.setup import (
    DEFAULT_MIX,
    ROLES,
    TEAMS,
    TURN_LIMIT,
    VILLAGER,
    WOLF_PARITY,
    WOLVES_DEAD,
    WerewolfOptions,
    max_days,
    role_mix,
)
from games.werewolf.state import WerewolfState
from games.werewolf.view import WerewolfView

_TABLE = "\n".join(
    f"| {seats} | "
    + ", ".join(f"{count} {role}" for role, count in mix.items())
    + f" | {seats - sum(mix.values())} |"
    for seats, mix in DEFAULT_MIX.items()
)

RULES = f"""\
# Werewolf

A village of 5 to 12 seats, some of them werewolves by night. The village wants every wolf dead; the wolves
want to become as many as the rest. Each seat knows its own role; the wolves know each other. How many seats
hold each role is public.

## Roles

- **villager**: nothing but eyes, a voice and a vote.
- **werewolf**: chooses, with the pack, whom to kill each night.
- **seer**: learns each night whether one other living seat is a werewolf.
- **doctor**: protects one living seat each night from the wolves (not from poison), himself included (unless
  `doctor_self=false`), but not the same seat two nights in a row (unless `doctor_repeat=true`). He is not told
  whether it mattered.
- **hunter**: shoots a seat of his choice as he dies, by day or by night; he may hold his fire. Poisoned, he
  cannot shoot; nor does he where no wolf is left.
- **witch**: has one healing and one poison potion for the whole match, and drinks at most one a night. Each
  night she is told whom the wolves attacked, herself included, whether or not the doctor stands there.

| seats | roles | villagers |
|---|---|---|
{_TABLE}

The option `roles` names another mix. At least one seat is a werewolf, fewer than half are; of seer, doctor,
hunter and witch there is one at most; the other seats are villagers.

## Night

The match begins with a night.

1. The living wolves talk among themselves, all at once, for `wolf_talk_rounds` rounds. A lone wolf does not
   talk (without `reveal` he does, so that nothing shows that he is alone).
2. At the same time each living wolf names a target, the seer a seat to look at, and the doctor a seat to
   protect. Wolves must name somebody and cannot name a wolf. The seat that most wolves named is attacked; among
   equals, chance decides. The seer is told the answer at once, even if he dies that night.
3. The witch, while she lives, is told whom the wolves attacked, and answers `none`, `heal` or `poison SEAT`.
   She is asked also when she has nothing left, so that nothing shows what she used. (Without `reveal` she is
   asked even when dead, is told nothing and can answer `none` alone, so that nothing shows that she is dead.)
4. At dawn it is announced who died, and no more: not by what. The attacked seat dies unless protected or
   healed; a poisoned seat dies. A hunter among the dead shoots before the day goes on.

A night runs the same whoever is dead: without seer, doctor or witch their part is left out.

## Day

1. Every living seat speaks in seat order, `speech_rounds` times. Day 1 begins with seat 0, day 2 with seat 1,
   and so on (the next living one).
2. All living seats vote at once for another living seat, or abstain; votes are then revealed together. The
   seat with most votes is out; abstentions count for nobody. If everybody abstains, nobody dies.
3. On a tie nobody dies. With `ties=runoff` all living seats vote once more, among the tied alone; if that
   is tied too, or all abstain, nobody dies.
4. A seat voted out has last words, then dies; those who die otherwise have none. A hunter then shoots.

With `reveal` (the default) the role of a seat is made public as it dies, and never before. Without it no role is
made public before the end, though a shot tells that it came from the hunter.

## The end

It is looked for after every dawn and every day, when all shots are fired.

- No wolf lives: the village wins, even if nobody else lives either.
- The wolves outnumber the others: the wolves win. As many wolves as others: the wolves win as well, unless a
  living hunter or a living witch who still has her poison could undo it; then the match goes on.
- Day `max_days` (by default the number of seats) ends with neither: a draw.

The return is +1 for each seat of the winning team, dead or alive, −1 for the others, and 0 in a draw.

## Answers

A speech has at most `max_speech_chars` characters.

A seat that gives no legal answer keeps silent, abstains, holds its fire, leaves the potions alone, or names the
first seat it may.

Sources: Dimitry Davidoff, "Mafia" (1986); Andrew Plotkin, "Werewolf" (1997); hunter and witch after Philippe
des Pallières and Hervé Marly, "Les Loups-Garous de Thiercelieux" (2001).
"""


class Werewolf(Game):
    """Werewolf, 5 to 12 seats."""

    name = "werewolf"
    title = "Werewolf"
    version = "1"
    seats = (5, 12)
    default_seats = 8
    team_names = TEAMS
    role_names = ROLES
    simultaneous = True
    rules = RULES
    options_type = WerewolfOptions
    state_type = WerewolfState
    view_type = WerewolfView

    def check(self, seats: int, options: Any) -> None:
        role_mix(seats, options)

    def max_plies(self, seats: int, options: Any) -> int:
        chosen = self.parse_options(options)
        assert isinstance(chosen, WerewolfOptions)
        night = chosen.wolf_talk_rounds + 2
        # Every seat may live to speak on every day, where doctor and witch save all and nobody is voted out.
        day = chosen.speech_rounds * seats + 2
        runoff, shot = int(chosen.ties == "runoff"), 1
        return max_days(seats, chosen) * (night + day + runoff) + shot

    def narrate(self, event: Event) -> str | None:
        tell = _TALES.get(event.kind)
        return None if tell is None else tell(event.data)


def _seats(seats: list[int]) -> str:
    words = [f"seat {seat}" for seat in seats]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _role(role: str | None) -> str:
    return "" if role is None else f" ({role})"


def _start(data: dict[str, Any]) -> str:
    mix = ", ".join(f"{count} {role}" for role, count in data["mix"].items())
    return f"{data['seats']} seats play Werewolf with these roles: {mix}."


def _pack(data: dict[str, Any]) -> str:
    return f"The pack of werewolves is {_seats(data['seats'])}."


def _wolf_target(data: dict[str, Any]) -> str:
    named = ", ".join(f"seat {wolf} names {at}" for wolf, at in data["votes"])
    return f"The wolves attack seat {data['at']} ({named})."


def _potion(data: dict[str, Any]) -> str:
    if data["at"] is None:
        return f"Seat {data['seat']} (witch) uses no potion."
    verb = "heals" if data["use"] == "heal" else "poisons"
    return f"Seat {data['seat']} (witch) {verb} seat {data['at']}."


def _dawn(data: dict[str, Any]) -> str:
    if not data["dead"]:
        return f"Day {data['day']} dawns; nobody died in the night."
    dead = " and ".join(f"seat {seat}{_role(role)}" for seat, role in data["dead"])
    return f"Day {data['day']} dawns; {dead} died in the night."


def _says(how: str) -> Callable[[dict[str, Any]], str]:
    def tell(data: dict[str, Any]) -> str:
        if not data["text"]:
            return f"Seat {data['seat']} {how} nothing."
        return f"Seat {data['seat']} {how}: {quote(data['text'])}"

    return tell


def _vote(data: dict[str, Any]) -> str:
    voters: dict[int | None, list[int]] = {}
    for seat, at in data["votes"]:
        voters.setdefault(at, []).append(seat)
    order = sorted(voters, key=lambda at: (at is None, -len(voters[at]), at or 0))
    votes = "; ".join(
        f"for {'nobody' if at is None else at}: {', '.join(map(str, voters[at]))}" for at in order
    )
    name = "Runoff vote" if data.get("runoff") else "Vote"
    if data["out"] is not None:
        result = f"seat {data['out']} is voted out"
    elif data.get("tied"):
        result = f"a tie of {_seats(data['tied'])}"
    else:
        result = "everybody abstained"
    return f"{name}: {result} ({votes})."


def _shot(data: dict[str, Any]) -> str:
    if data["at"] is None:
        return f"Seat {data['seat']} (hunter) holds his fire."
    return f"Seat {data['seat']} (hunter) shoots seat {data['at']}{_role(data['role'])}."


def _end(data: dict[str, Any]) -> str:
    how = {
        WOLVES_DEAD: "The village wins: no werewolf lives.",
        WOLF_PARITY: "The wolves win: the village can no longer stop them.",
        TURN_LIMIT: "The match is drawn: the last day has passed.",
    }[data["reason"]]
    special = ", ".join(f"seat {s} {role}" for s, role in enumerate(data["roles"]) if role != VILLAGER)
    return f"{how} The roles were: {special}; the rest villagers."


_TALES: dict[str, Callable[[dict[str, Any]], str]] = {
    "start": _start,
    "role": lambda data: f"Seat {data['seat']} is a {data['role']}.",
    "pack": _pack,
    "night": lambda data: f"Night {data['day']} falls.",
    "wolf_talk": _says("tells the wolves"),
    "wolf_target": _wolf_target,
    "see": lambda data: (
        f"Seat {data['seat']} (seer) sees that seat {data['at']} is {'a' if data['wolf'] else 'no'} werewolf."
    ),
    "protect": lambda data: f"Seat {data['seat']} (doctor) protects seat {data['at']}.",
    "attack": lambda data: f"Seat {data['seat']} (witch) learns that the wolves attacked seat {data['at']}.",
    "potion": _potion,
    "dawn": _dawn,
    "speech": _says("says"),
    "vote": _vote,
    "last_words": _says("says as last words"),
    "out": lambda data: f"Seat {data['seat']}{_role(data['role'])} is dead.",
    "shot": _shot,
    "end": _end,
}
