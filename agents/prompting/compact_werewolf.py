"""Werewolf in few words."""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from agents.bots.werewolf_belief import parse_speech
from agents.prompting.compact import CompactTemplate, words
from agents.prompting.template import Line
from games.base import Event
from games.referee import Turn
from games.werewolf import WerewolfView
from games.werewolf.setup import WEREWOLF, WITCH


class CompactWerewolf(CompactTemplate):
    """`dawn 1 dead 4 seer` · `say 0 seer 5 wolf 2 clear suspect 5` · `vote 5 by 0 1 2 vote none by 4 out 5`."""

    number: ClassVar[str] = "2"

    def system(self, view: WerewolfView) -> str:
        mix = " ".join(f"{role} {count}" for role, count in view.mix.items())
        return f"werewolf seats {view.seats} roles {mix}"

    def public(self, event: Event, view: WerewolfView) -> Line | None:
        data = event.data
        match event.kind:
            case "night":
                return Line(f"night {data['day']}", None, opens=True)
            case "dawn":
                dead = " ".join(_died(seat, role) for seat, role in data["dead"])
                told = f"dawn {data['day']} dead {dead or 'none'}"
                return Line(told, told)
            case "speech":
                return self._speech("say", data["seat"], data["text"], view)
            case "last_words":
                return self._speech("last", data["seat"], data["text"], view)
            case "vote":
                return self._vote(data)
            case "out":
                told = f"out {_died(data['seat'], data['role'])}"
                return Line(told, told)
            case "shot":
                at = "none" if data["at"] is None else _died(data["at"], data["role"])
                told = f"shot {data['seat']} at {at}"
                return Line(told, told)
        return None

    def private(self, event: Event, view: WerewolfView) -> Line | None:
        data, day = event.data, view.day
        match event.kind:
            case "wolf_talk":
                kill = parse_speech(data["text"], view.seats).kill
                return Line(f"tell {data['seat']} {words([] if kill is None else [kill])}")
            case "wolf_target":
                told = f"kill {day} {data['at']}"
            case "protect":
                told = f"guard {day} {data['at']}"
            case "attack":
                told = f"attack {day} {data['at']}"
            case "potion" if data["at"] is not None:
                told = f"{data['use']} {day} {data['at']}"
            case _:
                return None
        return Line(told, told)

    def state(self, turn: Turn, view: WerewolfView) -> list[str]:
        return [
            f"now {view.phase} {view.day} alive {words(view.alive)}",
            f"claims{_claims(view) or ' none'}",
            f"suspects {words(_suspects(view))}",
            self._you(view),
        ]

    def _you(self, view: WerewolfView) -> str:
        role = view.role or "none"
        told = f"you {self.me} {role}"
        if role == WEREWOLF:
            told += f" pack {words(view.pack)}"
        if role == WITCH:
            told += f" left {words(['heal'] * view.heal_left + ['poison'] * view.poison_left)}"
        return told + _results((sight.at, sight.wolf) for sight in view.sights)

    def _speech(self, how: str, seat: int, text: str, view: WerewolfView) -> Line:
        said = parse_speech(text, view.seats)
        claim = f" {said.role}{_results(said.results)}" if said.role else ""
        told = claim
        told += f" suspect {said.suspect}" if said.suspect is not None else ""
        told += f" trust {said.trust}" if said.trust is not None else ""
        new = claim and said[:2] != claimed_before(seat, view)
        return Line(f"{how} {seat}{told or ' nothing'}", f"{how} {seat}{claim}" if new else None)

    def _vote(self, data: Mapping[str, object]) -> Line:
        voters: dict[int | None, list[int]] = {}
        for seat, at in data["votes"]:  # type: ignore[attr-defined]
            voters.setdefault(at, []).append(seat)
        order = sorted(voters, key=lambda at: (at is None, at or 0))
        told = " ".join(f"vote {words([] if at is None else [at])} by {words(voters[at])}" for at in order)
        told = f"{told} out {words([] if data['out'] is None else [data['out']])}"
        return Line(told, told)


def _claims(view: WerewolfView) -> str:
    """Return what each living seat last claimed to be, and to have seen."""
    claims: dict[int, str] = {}
    for speech in view.speeches:
        said = parse_speech(speech.text, view.seats)
        if said.role:
            claims[speech.seat] = f" {speech.seat} {said.role}{_results(said.results)}"
    return "".join(claims[seat] for seat in view.alive if seat in claims)


def _suspects(view: WerewolfView) -> list[int]:
    """Return the living seats that were suspected today, each followed by how often, most often first."""
    times: Counter[int] = Counter()
    for speech in view.speeches:
        suspect = parse_speech(speech.text, view.seats).suspect
        if speech.day == view.day and suspect in view.alive:
            times[suspect] += 1
    order = sorted(times, key=lambda seat: (-times[seat], seat))
    return [number for seat in order for number in (seat, times[seat])]


def claimed_before(seat: int, view: WerewolfView) -> tuple[str | None, tuple[tuple[int, bool], ...]]:
    """Return the role and the seer's results that a seat claimed in its speech before the latest one, if any."""
    spoken = [speech.text for speech in view.speeches if speech.seat == seat]
    if not any(last.seat == seat for last in view.last_words):
        spoken = spoken[:-1]
    said = parse_speech(spoken[-1], view.seats) if spoken else None
    return (None, ()) if said is None else (said.role, said.results)


def _died(seat: int, role: str | None) -> str:
    return str(seat) if role is None else f"{seat} {role}"


def _results(results: object) -> str:
    return "".join(f" {at} {'wolf' if wolf else 'clear'}" for at, wolf in results)  # type: ignore[attr-defined]
