"""An Avalon match in progress.

Source: Don Eskridge, "The Resistance: Avalon", rulebook (Indie Boards & Cards, 2012).
"""

import random
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations, permutations
from typing import Self

from games.avalon.rules import (
    APPROVE,
    ASSASSIN,
    ASSASSINATE,
    CONFER,
    EVIL,
    EVIL_SEATS,
    FAIL,
    GOOD,
    LADY,
    LADY_AFTER,
    MAX_REJECTIONS,
    MERLIN,
    MINION,
    MORDRED,
    MORGANA,
    OBERON,
    OVER,
    PERCIVAL,
    PROPOSE,
    QUEST,
    REJECT,
    SERVANT,
    SIDES,
    SPEAK,
    SPECIAL_ROLES,
    SUCCESS,
    TEAM_SIZES,
    TO_WIN,
    TWO_FAILS_FROM,
    VOTING,
    make_deck,
    sighting,
)
from games.base import Outcome, State
from games.spaces import Action, ActionSpace, Choice, Subset, Text

VOTE = Choice((APPROVE, REJECT), "vote", APPROVE)
GOOD_CARD = Choice((SUCCESS,), "quest", SUCCESS)
EVIL_CARD = Choice((SUCCESS, FAIL), "quest", SUCCESS)


@lru_cache(maxsize=1024)
def _team_space(seats: int, size: int, leader: int) -> Subset:
    default = sorted((leader + i) % seats for i in range(size))
    return Subset(tuple(map(str, range(seats))), size, "propose", tuple(map(str, default)))


@lru_cache(maxsize=64)
def _text_space(max_chars: int, label: str) -> Text:
    return Text(max_chars, label)


class AvalonState(State):
    """One match."""

    __slots__ = (
        "_outcome",
        "attempt",
        "confer_ply",
        "conferred",
        "examined",
        "lady",
        "lady_held",
        "leader",
        "phase",
        "quest",
        "results",
        "role_of",
        "side_of",
        "spoken",
        "team",
    )

    def _start(self) -> None:
        n = self.seats
        deck = make_deck(n, self.options.roles)
        self.role_of = tuple(deck[card] for card in self._shuffle("roles", n))
        self.side_of = tuple(SIDES[role] for role in self.role_of)
        self.leader = self._draw("leader", n)
        self.phase = SPEAK
        self.quest = self.attempt = 1
        self.spoken = 0
        self.team: tuple[int, ...] = ()
        self.results: list[tuple[int, tuple[int, ...], int, bool]] = []
        """Ply, team, fails and success of each quest played."""
        self.lady: int | None = (self.leader - 1) % n if self.options.lady else None
        self.lady_held: list[int] = [] if self.lady is None else [self.lady]
        self.examined: list[tuple[int, int]] = []
        self.confer_ply = 0
        self.conferred = 0
        self._outcome: Outcome | None = None
        self._emit(
            "start",
            {
                "seats": n,
                "deck": list(deck),
                "team_sizes": list(TEAM_SIZES[n]),
                "fails_needed": [self._fails_needed(quest) for quest in range(1, 6)],
                "speech_rounds": self.options.speech_rounds,
                "lady": self.lady,
            },
        )
        for seat, role in enumerate(self.role_of):
            self._emit("role", {"seat": seat, "role": role, "team": self.side_of[seat]}, (seat,))
            if role not in (SERVANT, OBERON):
                as_what = "merlin or morgana" if role == PERCIVAL else EVIL
                data = {"seat": seat, "seats": list(sighting(self.role_of, seat)), "as": as_what}
                self._emit("sees", data, (seat,))
        self._open_round()

    def _fails_needed(self, quest: int) -> int:
        return 2 if quest == 4 and self.seats >= TWO_FAILS_FROM else 1

    def _evil(self) -> tuple[int, ...]:
        return tuple(seat for seat, side in enumerate(self.side_of) if side == EVIL)

    def turns(self) -> Mapping[int, ActionSpace]:
        n, options = self.seats, self.options
        match self.phase:
            case "speak":
                speaker = (self.leader + self.spoken) % n
                return {speaker: _text_space(options.max_speech_chars, SPEAK)}
            case "propose":
                return {self.leader: _team_space(n, TEAM_SIZES[n][self.quest - 1], self.leader)}
            case "vote":
                return dict.fromkeys(range(n), VOTE)
            case "quest":
                return {s: EVIL_CARD if self.side_of[s] == EVIL else GOOD_CARD for s in self.team}
            case "lady" if self.lady is not None:
                free = tuple(str(seat) for seat in range(n) if seat not in self.lady_held)
                return {self.lady: Choice(free, LADY)}
            case "confer":
                return {self._evil()[self.conferred]: _text_space(options.max_speech_chars, CONFER)}
            case "assassinate":
                good = tuple(str(seat) for seat, side in enumerate(self.side_of) if side == GOOD)
                return {self.role_of.index(ASSASSIN): Choice(good, ASSASSINATE)}
        return {}

    def _apply(self, actions: Mapping[int, Action]) -> None:
        match self.phase:
            case "speak":
                ((seat, text),) = actions.items()
                self._emit("speech", {"seat": seat, "text": text})
                self.spoken += 1
                if self.spoken == self.options.speech_rounds * self.seats:
                    self.phase = PROPOSE
            case "propose":
                ((seat, team),) = actions.items()
                self.team = tuple(map(int, team))
                data = {"seat": seat, "quest": self.quest, "team": list(self.team)}
                self._emit("proposal", data)
                self.phase = VOTING
            case "vote":
                self._count_votes(actions)
            case "quest":
                self._resolve_quest(actions)
            case "lady":
                ((seat, answer),) = actions.items()
                self._examine(seat, int(str(answer)))
            case "confer":
                ((seat, text),) = actions.items()
                self._emit("confer", {"seat": seat, "text": text}, self._evil())
                self.conferred += 1
                if self.conferred == EVIL_SEATS[self.seats]:
                    self.phase = ASSASSINATE
            case "assassinate":
                ((seat, answer),) = actions.items()
                target = int(str(answer))
                self._emit("stab", {"seat": seat, "target": target})
                self._end("assassination", EVIL if self.role_of[target] == MERLIN else GOOD)

    def _open_round(self) -> None:
        self.spoken = 0
        self.team = ()
        self.phase = SPEAK if self.options.speech_rounds else PROPOSE
        size = TEAM_SIZES[self.seats][self.quest - 1]
        data = {"quest": self.quest, "attempt": self.attempt, "leader": self.leader, "size": size}
        self._emit("round", data)

    def _count_votes(self, actions: Mapping[int, Action]) -> None:
        votes = [actions[seat] for seat in range(self.seats)]
        approved = 2 * votes.count(APPROVE) > self.seats
        data = {"quest": self.quest, "team": list(self.team), "votes": votes, "approved": approved}
        self._emit("votes", data)
        self.leader = (self.leader + 1) % self.seats
        if approved:
            self.phase = QUEST
        elif self.attempt == MAX_REJECTIONS:
            self._end("five rejections", EVIL)
        else:
            self.attempt += 1
            self._open_round()

    def _resolve_quest(self, actions: Mapping[int, Action]) -> None:
        for seat in self.team:
            self._emit("card", {"seat": seat, "quest": self.quest, "card": actions[seat]}, (seat,))
        fails = sum(card == FAIL for card in actions.values())
        success = fails < self._fails_needed(self.quest)
        self.results.append((len(self.plies) - 1, self.team, fails, success))
        data = {"quest": self.quest, "team": list(self.team), "fails": fails, "success": success}
        self._emit("quest", data)
        won = sum(result[3] for result in self.results)
        if len(self.results) - won == TO_WIN:
            self._end("three failed quests", EVIL)
        elif won < TO_WIN:
            if self.lady is not None and self.quest in LADY_AFTER:
                self.phase = LADY
                self._emit("token", {"seat": self.lady})
            else:
                self._next_quest()
        elif MERLIN in self.role_of:
            self.phase = CONFER
            self.confer_ply = len(self.plies)
            self._emit("assassination", {"successes": won})
            evil = self._evil()
            self._emit("evil", {"seats": list(evil), "assassin": self.role_of.index(ASSASSIN)}, evil)
        else:
            self._end("three quests", GOOD)

    def _next_quest(self) -> None:
        self.quest += 1
        self.attempt = 1
        self._open_round()

    def _examine(self, seat: int, target: int) -> None:
        self._emit("lady", {"seat": seat, "target": target})
        self._emit("loyalty", {"seat": seat, "target": target, "team": self.side_of[target]}, (seat,))
        self.examined.append((seat, target))
        self.lady_held.append(target)
        self.lady = target
        self._next_quest()

    def _end(self, reason: str, winner: str) -> None:
        self.phase = OVER
        returns = tuple(1.0 if side == winner else -1.0 for side in self.side_of)
        self._outcome = Outcome(reason, returns, self.side_of, self.role_of)
        data = {"reason": reason, "returns": list(returns), "teams": list(self.side_of)}
        self._emit("end", {**data, "roles": list(self.role_of)})

    def outcome(self) -> Outcome | None:
        return self._outcome

    def teams(self) -> tuple[str, ...]:
        return self.side_of

    def roles(self) -> tuple[str, ...]:
        return self.role_of

    def resample(self, seat: int, rng: random.Random) -> Self:
        """Draw uniformly among the deals that `seat` cannot rule out, then among the cards that fit."""
        draws = self.draws()
        if self.phase == OVER:
            return self._redealt(draws, self.plies, rng)
        deck = make_deck(self.seats, self.options.roles)
        roles = self._another_deal(seat, rng)
        cards: dict[str, list[int]] = {}
        for card, role in enumerate(deck):
            cards.setdefault(role, []).append(card)
        for copies in cards.values():
            rng.shuffle(copies)
        draws[0] = [cards[role].pop() for role in roles]
        plies = list(self.plies)
        evil = [s for s, role in enumerate(roles) if SIDES[role] == EVIL]
        for ply, team, fails, _ in self.results:
            own = int(plies[ply].get(seat) == FAIL)
            failing = rng.sample([s for s in team if s in evil and s != seat], fails - own)
            failing += [seat] * own
            plies[ply] = {s: FAIL if s in failing else SUCCESS for s in team}
        if self.phase in (CONFER, ASSASSINATE):
            words = [text for ply in plies[self.confer_ply :] for text in ply.values()]
            plies[self.confer_ply :] = [{s: text} for s, text in zip(evil, words, strict=False)]
        return self._redealt(draws, plies, rng)

    def _another_deal(self, seat: int, rng: random.Random) -> list[str]:
        # Given an evil set that fits, the number of ways to place the special roles is the same for each
        # such set, so the first fitting set in random order with a random placement is uniform over deals.
        roles, own = self.role_of, self.role_of[seat]
        seen = set(sighting(roles, seat))
        is_evil = self.side_of[seat] == EVIL
        known = {target: self.side_of[target] == EVIL for holder, target in self.examined if holder == seat}
        known[seat] = is_evil
        told = is_evil and self.phase in (CONFER, ASSASSINATE)
        if told:
            known.update((s, side == EVIL) for s, side in enumerate(self.side_of))
        needs = [
            (frozenset(team) - {seat}, fails - (self.plies[ply].get(seat) == FAIL))
            for ply, team, fails, _ in self.results
        ]
        assassin = roles.index(ASSASSIN) if ASSASSIN in roles else None
        special = sorted({role for role in roles if role in SPECIAL_ROLES})

        def fits(at: dict[str, int], evil: set[int]) -> bool:
            if any((place == seat) != (role == own) for role, place in at.items()):
                return False
            if told and at.get(ASSASSIN, assassin) != assassin:
                return False
            if own == MERLIN:
                return MORDRED not in at or evil - {at[MORDRED]} == seen
            if own == PERCIVAL:
                return all(at[role] in seen for role in (MERLIN, MORGANA) if role in at)
            return own == OBERON or not is_evil or OBERON not in at or evil - {at[OBERON], seat} == seen

        sets = list(combinations(range(self.seats), EVIL_SEATS[self.seats]))
        rng.shuffle(sets)
        for chosen in sets:
            evil = set(chosen)
            if any((s in evil) != side for s, side in known.items()):
                continue
            if any(len(evil & team) < fails for team, fails in needs):
                continue
            if own != PERCIVAL and not seen <= evil:
                continue
            dealt = [MINION if s in evil else SERVANT for s in range(self.seats)]
            good = [s for s in range(self.seats) if s not in evil]
            for side, places in ((EVIL, list(chosen)), (GOOD, good)):
                named = [role for role in special if SIDES[role] == side]
                placings = (dict(zip(named, way, strict=True)) for way in permutations(places, len(named)))
                ways = [at for at in placings if fits(at, evil)]
                if not ways:
                    break
                for role, place in rng.choice(ways).items():
                    dealt[place] = role
            else:
                return dealt
        raise AssertionError("the true deal always fits")
