"""What a reader of an Avalon match knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from games.avalon.rules import ASSASSINATE, CONFER, EVIL, LADY, OVER, PROPOSE, QUEST, SPEAK, VOTING
from games.base import Event, View


class Proposal(NamedTuple):
    """A proposed team; `votes` (by seat) and `approved` are None until revealed. Quests count from 1."""

    quest: int
    attempt: int
    leader: int
    team: tuple[int, ...]
    votes: tuple[str, ...] | None = None
    approved: bool | None = None


class QuestResult(NamedTuple):
    """A quest that was played."""

    quest: int
    team: tuple[int, ...]
    fails: int
    success: bool


class Speech(NamedTuple):
    """What a seat said before the proposal `attempt` of `quest`."""

    quest: int
    attempt: int
    seat: int
    text: str


class Examination(NamedTuple):
    """A use of the Lady of the Lake; `team` is None for those who did not see the answer."""

    quest: int
    seat: int
    target: int
    team: str | None = None


@dataclass(slots=True)
class AvalonView(View):
    """What a reader knows. For the omniscient reader `roles`, `sightings`, `cards` hold every seat's."""

    seat: int | None
    seats: int = 0
    deck: tuple[str, ...] = ()
    """All roles in play, one for each seat, in no order that tells anything."""
    team_sizes: tuple[int, ...] = ()
    fails_needed: tuple[int, ...] = ()
    speech_rounds: int = 0
    phase: str = ""
    quest: int = 0
    """Number of the current quest, from 1."""
    attempt: int = 0
    """Number of the current proposal on this quest, from 1."""
    leader: int | None = None
    spoken: int = 0
    """Speeches given before the current proposal."""
    proposals: list[Proposal] = field(default_factory=list)
    quests: list[QuestResult] = field(default_factory=list)
    speeches: list[Speech] = field(default_factory=list)
    lady: int | None = None
    """Who holds the Lady of the Lake."""
    lady_held: list[int] = field(default_factory=list)
    examinations: list[Examination] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)
    """Known roles by seat: the reader's own, and all after the end."""
    sightings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By seeing seat: the seats shown to it at the start (for percival merlin and morgana, else evil)."""
    cards: dict[tuple[int, int], str] = field(default_factory=dict)
    """Known quest cards by (quest, seat)."""
    evil: tuple[int, ...] = ()
    """All evil seats, known to evil before the assassination and to all after the end."""
    assassin: int | None = None
    conferred: list[tuple[int, str]] = field(default_factory=list)
    target: int | None = None
    """Whom the assassin named."""
    reason: str | None = None
    returns: tuple[float, ...] | None = None

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.phase == OVER

    @property
    def role(self) -> str | None:
        """The reader's own role."""
        return None if self.seat is None else self.roles.get(self.seat)

    @property
    def seen(self) -> tuple[int, ...]:
        """The seats shown to the reader at the start."""
        return () if self.seat is None else self.sightings.get(self.seat, ())

    @property
    def rejections(self) -> int:
        """Proposals rejected in a row on the current quest."""
        return max(self.attempt - 1, 0)

    @property
    def team(self) -> tuple[int, ...]:
        """The team that is voted on or on its quest, else nobody."""
        return self.proposals[-1].team if self.phase in (VOTING, QUEST) else ()

    @property
    def score(self) -> tuple[int, int]:
        """Quests that succeeded and failed."""
        won = sum(quest.success for quest in self.quests)
        return won, len(self.quests) - won

    def update(self, event: Event) -> None:
        data = event.data
        match event.kind:
            case "speech":
                self.speeches.append(Speech(self.quest, self.attempt, data["seat"], data["text"]))
                self.spoken += 1
                if self.spoken == self.speech_rounds * self.seats:
                    self.phase = PROPOSE
            case "round":
                self.quest, self.attempt, self.leader = data["quest"], data["attempt"], data["leader"]
                self.spoken = 0
                self.phase = SPEAK if self.speech_rounds else PROPOSE
            case "proposal":
                team = tuple(data["team"])
                self.proposals.append(Proposal(self.quest, self.attempt, data["seat"], team))
                self.phase = VOTING
            case "votes":
                votes, approved = tuple(data["votes"]), data["approved"]
                self.proposals[-1] = self.proposals[-1]._replace(votes=votes, approved=approved)
                self.phase = QUEST if approved else SPEAK
            case "card":
                self.cards[data["quest"], data["seat"]] = data["card"]
            case "quest":
                team = tuple(data["team"])
                self.quests.append(QuestResult(data["quest"], team, data["fails"], data["success"]))
            case "start":
                self._start(data)
            case "role":
                self.roles[data["seat"]] = data["role"]
            case "sees":
                self.sightings[data["seat"]] = tuple(data["seats"])
            case "token":
                self.phase = LADY
            case "lady":
                self.examinations.append(Examination(self.quest, data["seat"], data["target"]))
                self.lady = data["target"]
                self.lady_held.append(data["target"])
            case "loyalty":
                self.examinations[-1] = self.examinations[-1]._replace(team=data["team"])
            case "assassination":
                self.phase = CONFER
            case "evil":
                self.evil, self.assassin = tuple(data["seats"]), data["assassin"]
            case "confer":
                self.conferred.append((data["seat"], data["text"]))
                if len(self.conferred) == len(self.evil):
                    self.phase = ASSASSINATE
            case "stab":
                self.assassin, self.target = data["seat"], data["target"]
            case "end":
                self.phase = OVER
                self.reason, self.returns = data["reason"], tuple(data["returns"])
                self.roles = dict(enumerate(data["roles"]))
                self.evil = tuple(seat for seat, side in enumerate(data["teams"]) if side == EVIL)

    def asked(self, options: Any) -> tuple[int, ...]:
        match self.phase:
            case "speak" if self.leader is not None:
                return ((self.leader + self.spoken) % self.seats,)
            case "propose" if self.leader is not None:
                return (self.leader,)
            case "vote":
                return tuple(range(self.seats))
            case "quest":
                return self.team
            case "lady" if self.lady is not None:
                return (self.lady,)
            case "confer":
                return self.evil[len(self.conferred) :][:1]
            case "assassinate" if self.assassin is not None:
                return (self.assassin,)
        return ()

    def _start(self, data: Mapping[str, Any]) -> None:
        self.seats, self.deck = data["seats"], tuple(data["deck"])
        self.team_sizes, self.fails_needed = tuple(data["team_sizes"]), tuple(data["fails_needed"])
        self.speech_rounds = data["speech_rounds"]
        self.lady = data["lady"]
        if self.lady is not None:
            self.lady_held.append(self.lady)
