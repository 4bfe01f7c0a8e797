"""Avalon as a game: its set-up checks and its sentences.

Source: Don Eskridge, "The Resistance: Avalon", rulebook (Indie Boards & Cards, 2012).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from games.avalon.rules import (
    APPROVE,
    ASSASSIN,
    CUSTOMARY,
    EVIL,
    EVIL_SEATS,
    GOOD,
    LADY_AFTER,
    MAX_REJECTIONS,
    MERLIN,
    PERCIVAL,
    REJECT,
    RULES,
    SIDES,
    AvalonOptions,
)
from games.avalon.state import AvalonState
from games.avalon.view import AvalonView
from games.base import Event, Game
from games.errors import BadOption
from games.text import quote


class Avalon(Game):
    """The Resistance: Avalon, 5 to 10 seats."""

    name = "avalon"
    title = "The Resistance: Avalon"
    version = "1"
    seats = (5, 10)
    default_seats = 5
    team_names = (GOOD, EVIL)
    role_names = tuple(SIDES)
    simultaneous = True
    rules = RULES
    options_type = AvalonOptions
    state_type = AvalonState
    view_type = AvalonView

    def check(self, seats: int, options: Any) -> None:
        """Refuse a set of special roles that the seats cannot hold or that breaks the official set-up."""
        roles: tuple[str, ...] = CUSTOMARY[seats] if options.roles is None else options.roles
        start = f"avalon option roles: got {', '.join(roles)};"
        for side, room in ((EVIL, EVIL_SEATS[seats]), (GOOD, seats - EVIL_SEATS[seats])):
            count = sum(SIDES[role] == side for role in roles)
            if count > room:
                raise BadOption(
                    f"{start} {count} special {side} roles, but {seats} seats have {room} {side} seats"
                )
        for role, other in ((MERLIN, ASSASSIN), (ASSASSIN, MERLIN), (PERCIVAL, MERLIN)):
            if role in roles and other not in roles:
                raise BadOption(
                    f"{start} {role} is played only with {other}, add {other} or leave out {role}"
                )

    def max_plies(self, seats: int, options: Any) -> int:
        rounds: int = options.speech_rounds
        return 5 * (MAX_REJECTIONS * (rounds * seats + 2) + 1) + len(LADY_AFTER) + EVIL_SEATS[seats] + 1

    def narrate(self, event: Event) -> str | None:
        data = event.data
        match event.kind:
            case "speech":
                return f"Seat {data['seat']} says {quote(data['text'])}" if data["text"] else _silent(data)
            case "confer":
                if not data["text"]:
                    return f"To evil alone: seat {data['seat']} says nothing."
                return f"To evil alone, seat {data['seat']} says {quote(data['text'])}"
            case "round":
                quest, attempt = data["quest"], data["attempt"]
                return (
                    f"Quest {quest}, proposal {attempt} of {MAX_REJECTIONS}: seat {data['leader']} leads "
                    f"and will propose a team of {data['size']}."
                )
            case "proposal":
                return f"Seat {data['seat']} proposes {_seats(data['team'])} for quest {data['quest']}."
            case "votes":
                votes = data["votes"]
                approving = [seat for seat, vote in enumerate(votes) if vote == APPROVE]
                rejecting = [seat for seat, vote in enumerate(votes) if vote == REJECT]
                result = "approved" if data["approved"] else "rejected"
                return (
                    f"The team {_seats(data['team'])} is {result}: {_seats(approving)} approved, "
                    f"{_seats(rejecting)} rejected."
                )
            case "card":
                return f"Seat {data['seat']} plays {data['card']} on quest {data['quest']}."
            case "quest":
                result = "succeeds" if data["success"] else "fails"
                fails = f"{data['fails']} fail" + ("" if data["fails"] == 1 else "s")
                return f"Quest {data['quest']} by {_seats(data['team'])} {result} with {fails}."
            case "start":
                lady = "" if data["lady"] is None else f" Seat {data['lady']} holds the Lady of the Lake."
                return f"{data['seats']} seats, the roles in play are {', '.join(data['deck'])}.{lady}"
            case "role":
                return f"Seat {data['seat']} is {data['role']}, on the side of {data['team']}."
            case "sees":
                if data["as"] != EVIL:
                    return f"Seat {data['seat']} sees {_seats(data['seats'])}: merlin, and any morgana."
                return f"Seat {data['seat']} sees as evil: {_seats(data['seats'])}."
            case "token":
                return f"Seat {data['seat']} will examine a seat with the Lady of the Lake."
            case "lady":
                return (
                    f"Seat {data['seat']} examines seat {data['target']} and hands on the Lady of the Lake."
                )
            case "loyalty":
                return f"Seat {data['seat']} learns that seat {data['target']} is {data['team']}."
            case "assassination":
                return (
                    "Good has three quests; evil confers, then the assassin names whom it takes for merlin."
                )
            case "evil":
                return f"The evil seats are {_seats(data['seats'])}; the assassin is seat {data['assassin']}."
            case "stab":
                return f"The assassin, seat {data['seat']}, names seat {data['target']}."
            case "end":
                winner = next(t for t, r in zip(data["teams"], data["returns"], strict=True) if r > 0)
                roles = ", ".join(f"seat {seat} {role}" for seat, role in enumerate(data["roles"]))
                why = data["reason"]
                if why == "assassination":
                    why = f"the assassin {'found' if winner == EVIL else 'missed'} merlin"
                return f"The side of {winner} wins ({why}). Roles: {roles}."
        return None


def _seats(seats: Sequence[int]) -> str:
    if not seats:
        return "nobody"
    return ("seat " if len(seats) == 1 else "seats ") + ", ".join(map(str, seats))


def _silent(data: Mapping[str, Any]) -> str:
    return f"Seat {data['seat']} says nothing."
