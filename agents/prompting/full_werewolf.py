"""Werewolf in prose: the rules of this table, the role, the course of the match."""

from typing import ClassVar

from agents.bots.werewolf_belief import parse_speech
from agents.prompting.compact_werewolf import claimed_before
from agents.prompting.full import QUOTED, FullTemplate, seats_word
from agents.prompting.template import Line, listed
from games.base import Event
from games.referee import Turn
from games.text import quote
from games.werewolf import WerewolfOptions, WerewolfView
from games.werewolf.setup import DOCTOR, HUNTER, SEER, VILLAGER, WEREWOLF, WITCH, max_days

_AIMS = {
    WEREWOLF: "Kill the village seats at night. By day seem to be one of them, and cast suspicion on others.",
    SEER: "Learn who is a werewolf, and get them voted out. If the werewolves know that you are the seer they may "
    "kill you, so choose well when to say it.",
    DOCTOR: "Protect the seats that the werewolves want dead, and find the werewolves by day.",
    HUNTER: "Find the werewolves by day. When you die, shoot one of them if you can.",
    WITCH: "Use each potion where it helps the village most, and find the werewolves by day.",
}


class FullWerewolf(FullTemplate):
    """Every role at every table."""

    number: ClassVar[str] = "1"

    # Rules and role

    def system(self, view: WerewolfView) -> str:
        return "\n".join((*self._rules(view), "", *self._you(view)))

    def _options(self) -> WerewolfOptions:
        options = self.seat.game.parse_options(self.seat.options)
        assert isinstance(options, WerewolfOptions)
        return options

    def _rules(self, view: WerewolfView) -> list[str]:
        n, mix, options = view.seats, view.mix, self._options()
        rescue = [role for role in (HUNTER, WITCH) if role in mix]
        unless = f" (unless a living {' or '.join(rescue)} could still stop them)" if rescue else ""
        shown = " and which role it had." if options.reveal else ", but not its role."
        rules = [
            (
                f"The roles at this table: {', '.join(f'{count} {role}' for role, count in mix.items())}. "
                "The werewolves are one side, all others are the village."
            ),
            (
                "The village wins when no werewolf lives. The werewolves win when they are as many as the "
                f"others{unless}. After day {max_days(n, options)} the match is a draw."
            ),
            f"Each night {self._night(view, options)} In the morning all learn who died{shown}",
            f"Each day {self._day(options)}",
        ]
        if HUNTER in mix:
            rules.append("When the hunter dies (not by poison), he may shoot one living seat.")
        title = f"You play Werewolf, a game of hidden roles, with {n} seats numbered 0 to {n - 1}."
        return [title, "", "# Rules", *(f"- {rule}" for rule in (*rules, QUOTED))]

    def _night(self, view: WerewolfView, options: WerewolfOptions) -> str:
        parts = ["the werewolves choose one seat to kill."]
        if SEER in view.mix:
            parts.append("The seer learns whether one living seat is a werewolf.")
        if DOCTOR in view.mix:
            limits = [] if options.doctor_self else ["not himself"]
            limits += [] if options.doctor_repeat else ["not the same seat two nights in a row"]
            parts.append(
                f"The doctor protects one seat from them{''.join(f', {limit}' for limit in limits)}."
            )
        if WITCH in view.mix:
            parts.append(
                "The witch learns whom they attack, and may heal that seat or poison another, each once in the match."
            )
        return " ".join(parts)

    def _day(self, options: WerewolfOptions) -> str:
        often = "" if options.speech_rounds == 1 else f" {options.speech_rounds} times"
        speech = f"every living seat speaks{often}, then" if options.speech_rounds else "nobody speaks, and"
        shown = ", and its role is shown" if options.reveal else ""
        tie = (
            "there is one more vote among the tied; if that is tied too, nobody dies."
            if options.ties == "runoff"
            else "nobody dies."
        )
        return (
            f"{speech} all vote at once for a living seat, or abstain. The seat with most votes dies{shown}. "
            f"On a tie {tie}"
        )

    def _you(self, view: WerewolfView) -> list[str]:
        role = view.role or "unknown"
        side = "the werewolves" if role == WEREWOLF else "the village"
        return [
            "# You",
            f"You are seat {self.me}. Your role is {role}. You win with {side}. {self._known(view)}".rstrip(),
            self._aim(role, view),
        ]

    def _known(self, view: WerewolfView) -> str:
        """Return what the role knew from the start; later deaths change nothing in it."""
        if view.role != WEREWOLF:
            return ""
        fellows = [seat for seat in view.pack if seat != self.me]
        if not fellows:
            return "You are the only werewolf."
        return f"The other werewol{'f is' if len(fellows) == 1 else 'ves are'} {seats_word(fellows)}."

    def _aim(self, role: str, view: WerewolfView) -> str:
        if role == WEREWOLF and len(view.pack) > 1:
            return f"{_AIMS[role]} Do not vote your fellows out without need."
        return _AIMS.get(role, "Find the werewolves from what is said and how seats vote, and vote them out.")

    # The course of the match

    def public(self, event: Event, view: WerewolfView) -> Line | None:
        data = event.data
        match event.kind:
            case "start":
                return None
            case "night":
                return Line(f"Night {data['day']} falls.", None, opens=True)
            case "speech":
                return self._speech(data["seat"], data["text"], "says", view)
            case "last_words":
                return self._speech(data["seat"], data["text"], "says as last words", view)
            case "out":
                role = "" if data["role"] is None else f"; its role was {data['role']}"
                told = self.marked(f"Seat {data['seat']} is dead{role}.")
                return Line(told, told)
            case "vote":
                told = f"Day {view.day}. {self.seat.game.narrate(event)}"
                return Line(told, told)
        told_by_game = self.tell(event)
        return None if told_by_game is None else Line(told_by_game, told_by_game)

    def _speech(self, seat: int, text: str, says: str, view: WerewolfView) -> Line:
        whole = self.marked(f"Seat {seat} {says} {quote(text) if text else 'nothing.'}")
        said = parse_speech(text, view.seats)
        if said.role is None or said[:2] == claimed_before(seat, view):
            return Line(whole)
        results = [f"{at} {'a werewolf' if wolf else 'no werewolf'}" for at, wolf in said.results]
        claim = f"Day {view.day}. Seat {seat} claims to be the {said.role}" + (
            f", and that it saw: {', '.join(results)}." if results else "."
        )
        return Line(whole, claim)

    def private(self, event: Event, view: WerewolfView) -> Line | None:
        data = event.data
        night = f"Night {view.day}: "
        match event.kind:
            case "role" | "pack":
                return None
            case "wolf_talk":
                says = quote(data["text"]) if data["text"] else "nothing."
                you = " (you)" if data["seat"] == self.me else ""
                return Line(f"{night}seat {data['seat']}{you} tells the werewolves {says}")
            case "wolf_target":
                named = ", ".join(f"{wolf} named {at}" for wolf, at in data["votes"])
                told = f"{night}the werewolves attacked seat {data['at']}"
                return Line(f"{told} ({named}).", f"{told}.")
            case "see":
                told = f"{night}you saw that seat {data['at']} is {'a' if data['wolf'] else 'no'} werewolf."
            case "protect":
                told = f"{night}you protected {self._seat(data['at'])}."
            case "attack":
                told = f"{night}the werewolves attacked {self._seat(data['at'], you='you')}."
            case "potion":
                if data["at"] is None:
                    return Line(f"{night}you used no potion.")
                verb = "healed" if data["use"] == "heal" else "poisoned"
                told = f"{night}you {verb} {self._seat(data['at'])}."
            case _:
                return super().private(event, view)
        return Line(told, told)

    def _seat(self, seat: int, *, you: str = "yourself") -> str:
        return you if seat == self.me else f"seat {seat}"

    # The turn

    def state(self, view: WerewolfView) -> list[str]:
        when = f"{'Night' if view.phase == 'night' else 'Day'} {view.day}"
        dead = [f"{death.seat} ({death.role})" if death.role else str(death.seat) for death in view.deaths]
        return [f"{when}. Alive: {listed(view.alive)}. Dead: {', '.join(dead) or 'nobody'}."]

    def decision(self, turn: Turn, view: WerewolfView) -> list[str]:
        label = turn.space.label
        asked = {
            "wolf_talk": "Only the werewolves hear you: say whom you want to kill tonight.",
            "wolf_target": "Name the seat to kill tonight. The seat that most werewolves name is attacked.",
            "see": "Name the seat that you look at tonight: you learn whether it is a werewolf.",
            "protect": "Name the seat that you protect tonight.",
            "potion": self._asked_to_brew(turn, view),
            "speak": "It is your turn to speak to all: say whom you suspect or trust, and why.",
            "vote": self._asked_to_vote(view),
            "last_words": "You are voted out. Say your last words to all.",
            "shoot": "You die. Shoot a seat that you take for a werewolf, or answer none.",
        }.get(label, f"It is your turn: {label}.")
        return [self._reminder(view), asked]

    def _reminder(self, view: WerewolfView) -> str:
        role = view.role or "unknown"
        parts = [f"You are seat {self.me}, {'a ' if role in (VILLAGER, WEREWOLF) else 'the '}{role}."]
        if known := self._known(view):
            parts.append(known)
        if view.sights:
            seen = [f"{sight.at} {'a' if sight.wolf else 'no'} werewolf" for sight in view.sights]
            parts.append(f"You saw: {', '.join(seen)}.")
        if role == WITCH:
            left = ["heal"] * view.heal_left + ["poison"] * view.poison_left
            parts.append(f"Potions left: {', '.join(left) or 'none'}.")
        return " ".join(parts)

    def _asked_to_brew(self, turn: Turn, view: WerewolfView) -> str:
        attacked = [deed.at for deed in view.attacks if deed.day == view.day and deed.at is not None]
        if not attacked:
            return "You can use no potion: answer none."
        told = f"The werewolves attack {self._seat(attacked[0], you='you')} tonight. Answer none"
        told += ", or heal" if view.heal_left else ""
        return told + (", or poison and a seat's number." if view.poison_left else ".")

    def _asked_to_vote(self, view: WerewolfView) -> str:
        last = view.votes[-1] if view.votes else None
        if last is not None and last.day == view.day and last.tied:
            return f"The vote was a tie. Vote once more, among {seats_word(last.tied)}, or abstain."
        return "Vote for the seat that shall die, or abstain."
