"""The bot that plays any legal action, each as likely. It plays every game."""

from agents.base import Bot, Decision
from games.referee import Turn


class RandomBot(Bot):
    """Samples the action space uniformly."""

    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.sample(self.rng()))
