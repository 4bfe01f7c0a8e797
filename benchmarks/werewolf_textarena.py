"""Werewolf with 10 seats, random play, every seat's prompt and view kept up: beside TextArena's SecretMafia.

On our side each new event becomes a sentence in the prompt of every seat that may see it (chat messages, one
more each time the seat is asked), and is folded into that seat's structured view. One row leaves the views
out, as TextArena has nothing like them. TextArena runs once as `SecretMafia-v0`, whose wrapper renders the
acting player's history as one string, and once as `SecretMafia-v0-raw`, which hands over the new messages
unrendered.

Replies are random and legal on each side, speech is drawn from the same speeches, and TextArena's legal
targets are read from its state, which costs it nothing. The rules differ, and so does the length of a game:
figures are per game and per action, and ours are also taken in the set-up that comes closest to
SecretMafia's (two wolves, seer, doctor, three rounds of speech, no wolves' talk).

    python -m benchmarks.werewolf_textarena
"""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks._measure import (
    Side,
    Spread,
    Work,
    arguments,
    interleave,
    machine,
    positive,
    ratios,
    say_missing,
    table,
    verdict,
)
from games.base import Audience, Event, Game
from games.registry import load_game
from games.spaces import Text

SEATS = 10
WORDS = tuple("I think we should trust doubt player because vote them now last night".split())
TARGET = 4.0
LIKE_MAFIA = {"roles": {"werewolf": 2, "seer": 1, "doctor": 1}, "speech_rounds": 3, "wolf_talk_rounds": 0}
OURS, OURS_TEXTS, OURS_LIKE = "ours", "ours, prompts without views", "ours, set up like SecretMafia"
PEER, PEER_RAW = "TextArena SecretMafia-v0", "TextArena SecretMafia-v0-raw"

Told = tuple[Event, Audience, str | None]
"""An event, who may see it, and its sentence."""


class Reader:
    """One seat's reading of the match: its prompt as chat messages, one more each time it reads on, and its view."""

    def __init__(self, game: Game, seat: int, *, views: bool) -> None:
        self.view = game.view(seat) if views else None
        self.messages: list[str] = []
        self._seat = seat
        self._read = 0

    def read(self, told: Sequence[Told]) -> None:
        """Bring messages and view up to date with the events, and their sentences, so far."""
        seat = self._seat
        update = None if self.view is None else self.view.update
        lines = []
        for event, audience, sentence in told[self._read :]:
            if audience is None or seat in audience:
                if update is not None:
                    update(event)
                if sentence is not None:
                    lines.append(sentence)
        self._read = len(told)
        self.messages.append("\n".join(lines))


def play_ours(
    games: int, seed: int, *, said: Sequence[str], options: dict[str, Any] | None = None, views: bool = True
) -> Work:
    """Random play through `State`, every seat reading along."""
    rng = random.Random(seed)
    game = load_game("werewolf")
    parsed = game.parse_options(options)
    actions = 0
    for number in range(games):
        state = game.new(seed=seed + number, seats=SEATS, options=parsed)
        readers = [Reader(game, seat, views=views) for seat in range(SEATS)]
        told = [(event, event.audience, game.narrate(event)) for event in state.history]
        while turns := state.turns():
            chosen = {}
            for seat, space in turns.items():
                readers[seat].read(told)
                chosen[seat] = rng.choice(said) if type(space) is Text else space.sample(rng)
            actions += len(chosen)
            told += [(event, event.audience, game.narrate(event)) for event in state.apply(chosen)]
        for reader in readers:
            reader.read(told)
    return Work(games, actions)


def speeches(words: int) -> tuple[str, ...]:
    """Return the speeches that every side draws from: of half as many words to half as many again."""
    rng = random.Random(0)
    lengths = [rng.randint((words + 1) // 2, words + words // 2) for _ in range(64)]
    return tuple(" ".join(rng.choices(WORDS, k=length)) for length in lengths)


def peer_sides(said: Sequence[str]) -> list[Side]:
    """TextArena, wrapped and raw; empty where it is not installed."""
    try:
        import textarena
    except ImportError:
        return []

    def play(games: int, seed: int, *, name: str) -> Work:
        rng = random.Random(seed)
        actions = 0
        for number in range(games):
            env = textarena.make(name)
            env.reset(num_players=SEATS, seed=seed + number)
            state = env.state
            done = False
            while not done:
                _, observation = env.get_observation()
                assert observation is not None
                talks = state.game_state["phase"].name == "DAY_DISCUSSION"
                action = rng.choice(said) if talks else f"[{rng.choice(state.game_state['alive_players'])}]"
                done, _ = env.step(action)
                actions += 1
            env.close()
        return Work(games, actions)

    return [
        Side(PEER, partial(play, name="SecretMafia-v0")),
        Side(PEER_RAW, partial(play, name="SecretMafia-v0-raw")),
    ]


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(
        f"Werewolf with {SEATS}, random play, beside TextArena's SecretMafia.", games=20, rounds=31
    )
    parser.add_argument("--words", type=positive, default=12, help="words of a speech, on the average")
    flags = parser.parse_args(args)
    said = speeches(flags.words)
    peers = peer_sides(said)
    sides = [
        Side(OURS, partial(play_ours, said=said)),
        Side(OURS_TEXTS, partial(play_ours, said=said, views=False)),
        Side(OURS_LIKE, partial(play_ours, said=said, options=LIKE_MAFIA)),
        *peers,
    ]
    samples = interleave(sides, games=flags.games, rounds=flags.rounds)
    print(
        f"Werewolf with {SEATS}, random play, every seat's prompt and view kept up, "
        f"{flags.rounds} rounds of {flags.games} games of each side in turns, CPU time"
    )
    print(machine("evoke-arena", "textarena"))
    rows = []
    for name, taken in samples.items():
        length = sum(s.actions for s in taken) / sum(s.games for s in taken)
        rows.append(
            [
                name,
                Spread.of(s.games_per_s for s in taken).show(),
                f"{length:.1f}",
                Spread.of(s.actions_per_s for s in taken).show(),
            ]
        )
    print(table(["side", "games/s", "actions a game", "actions/s"], rows))
    if not peers:
        print(say_missing("textarena"))
        return
    rows = [
        [
            ours,
            peer,
            ratios(samples[ours], samples[peer]).show(".2f"),
            ratios(samples[ours], samples[peer], per="actions_per_s").show(".2f"),
        ]
        for ours in (OURS, OURS_TEXTS, OURS_LIKE)
        for peer in (PEER, PEER_RAW)
    ]
    print(table(["side", "is faster than", "in games by", "in actions by"], rows))
    print(
        f"{OURS} against {PEER}, games: "
        + verdict(ratios(samples[OURS], samples[PEER]).median, target=TARGET)
    )


if __name__ == "__main__":
    main()
