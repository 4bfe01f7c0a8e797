"""What goes wrong in training, told apart and answered: rewards that are always alike, steps that go too far,
answers that cannot be read, advice that hurts, judges that cost too much.

`Alarms` is a fold over what each update measured; its state is plain data. For each kind the settings say what is
done: nothing, a note, backing off (a smaller step, that grows back; half the advice), or the end of the run.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from agents.errors import BadCheckpoint
from agents.training.config import Action, AlarmSettings

Kind = Literal["flat", "kl_spike", "format_failures", "not_finite", "retrieval_hurts", "judge_cost"]
HURTS_Z = 1.96
"""Standard errors by which attempts with advice must succeed less often than those without."""
LEAST_STEP = 1e-3
"""Of the learning rate, what backing off leaves at least."""
LEAST_ADVICE = 0.02
"""A share of advice below which none is given."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What one update measured.

    Args:
        trajectories: that were learned from.
        outcome_low, outcome_high: the smallest and the largest of their outcomes.
        flat: whether every advantage was zero.
        kl: divergence of the new weights from those that sampled, in nats a token; None where nothing was learned.
        finite: False where the update was refused because of numbers that are not finite.
        answers, failures: of the learner, and those that were unreadable, illegal or late.
        advised, advised_won, plain, plain_won: attempts with advice and without, and those that succeeded.
        judge_tokens, learner_tokens: that were read and written.
    """

    trajectories: int = 0
    outcome_low: float = 0.0
    outcome_high: float = 0.0
    flat: bool = False
    kl: float | None = None
    finite: bool = True
    answers: int = 0
    failures: int = 0
    advised: int = 0
    advised_won: int = 0
    plain: int = 0
    plain_won: int = 0
    judge_tokens: int = 0
    learner_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something is wrong: what, in a line, and what is done about it."""

    kind: Kind
    text: str
    action: Action

    def to_data(self) -> dict[str, str]:
        """Return it as plain data, its kind under `alarm`."""
        return {"alarm": self.kind, "text": self.text, "action": self.action}


@dataclass(slots=True)
class _State:
    flat: int = 0
    not_finite: int = 0
    step: float = 1.0
    advice: float = 1.0
    advised: int = 0
    advised_won: int = 0
    plain: int = 0
    plain_won: int = 0
    judge_tokens: int = 0
    learner_tokens: int = 0
    failing: bool = False
    costly: bool = False


class Alarms:
    """Watches a run. `step` multiplies the learning rate, `advice` the share of attempts that get advice."""

    def __init__(self, settings: AlarmSettings) -> None:
        self.settings = settings
        self._state = _State()

    @property
    def step(self) -> float:
        """What is left of the learning rate."""
        return self._state.step

    @property
    def advice(self) -> float:
        """What is left of the share of attempts that get advice."""
        return self._state.advice

    def look(self, signals: Signals) -> list[Alarm]:
        """Take in what an update measured, and return what is wrong. Backing off is done here."""
        state, settings = self._state, self.settings
        state.step = min(1.0, state.step * settings.recover)
        found = [
            *self._flat(signals),
            *self._not_finite(signals),
            *self._kl(signals),
            *self._failures(signals),
            *self._retrieval(signals),
            *self._judges(signals),
        ]
        for alarm in found:
            if alarm.action == "back_off":
                if alarm.kind == "retrieval_hurts":
                    state.advice = state.advice / 2 if state.advice / 2 >= LEAST_ADVICE else 0.0
                else:
                    state.step = max(LEAST_STEP, state.step * settings.step)
        return [alarm for alarm in found if alarm.action != "ignore"]

    def _flat(self, signals: Signals) -> list[Alarm]:
        if not signals.trajectories:
            return []
        self._state.flat = self._state.flat + 1 if signals.flat else 0
        if not self._state.flat or self._state.flat % self.settings.flat_updates:
            return []
        low, high = signals.outcome_low, signals.outcome_high
        rewards = f"every reward is {low:g}" if low == high else "within each group all rewards are the same"
        return [
            Alarm("flat", f"{rewards} for {self._state.flat} updates: nothing is learned", self.settings.flat)
        ]

    def _not_finite(self, signals: Signals) -> list[Alarm]:
        self._state.not_finite = 0 if signals.finite else self._state.not_finite + 1
        if signals.finite:
            return []
        # Each refused update makes the step smaller; only many in a row count as the end.
        if self._state.not_finite < self.settings.not_finite_updates:
            return [Alarm("not_finite", "an update gave no finite numbers; the weights stay", "back_off")]
        text = f"{self._state.not_finite} updates in a row gave no finite numbers"
        return [Alarm("not_finite", text, self.settings.not_finite)]

    def _kl(self, signals: Signals) -> list[Alarm]:
        if signals.kl is None or signals.kl <= self.settings.kl:
            return []
        text = f"an update moved the policy by {signals.kl:.3g} nats a token, more than {self.settings.kl:g}"
        return [Alarm("kl_spike", text, self.settings.kl_spike)]

    def _failures(self, signals: Signals) -> list[Alarm]:
        if not signals.answers:
            return []
        share = signals.failures / signals.answers
        was, self._state.failing = self._state.failing, share > self.settings.failures
        if not self._state.failing or was:  # told when it begins, not with every update
            return []
        text = f"{share:.0%} of {signals.answers} answers failed, more than {self.settings.failures:.0%}"
        return [Alarm("format_failures", text, self.settings.format_failures)]

    def _retrieval(self, signals: Signals) -> list[Alarm]:
        state = self._state
        for name in ("advised", "advised_won", "plain", "plain_won"):
            setattr(state, name, getattr(state, name) + getattr(signals, name))
        if min(state.advised, state.plain) < self.settings.retrieval_attempts:
            return []
        with_it, without = state.advised_won / state.advised, state.plain_won / state.plain
        pooled = (state.advised_won + state.plain_won) / (state.advised + state.plain)
        error = math.sqrt(max(pooled * (1 - pooled), 1e-12) * (1 / state.advised + 1 / state.plain))
        counts = f"{with_it:.0%} of {state.advised} attempts with advice succeeded, {without:.0%} without"
        # What was compared is not compared again: each stretch is one look.
        state.advised = state.advised_won = state.plain = state.plain_won = 0
        if with_it - without > -HURTS_Z * error:
            return []
        return [Alarm("retrieval_hurts", counts, self.settings.retrieval_hurts)]

    def _judges(self, signals: Signals) -> list[Alarm]:
        state = self._state
        state.judge_tokens += signals.judge_tokens
        state.learner_tokens += signals.learner_tokens
        ratio = state.judge_tokens / max(1, state.learner_tokens)
        was, state.costly = state.costly, ratio > self.settings.judge_tokens
        if not state.costly or was:
            return []
        text = f"judges took {ratio:.2f} tokens for each of the learner's, more than {self.settings.judge_tokens:g}"
        return [Alarm("judge_cost", text, self.settings.judge_cost)]

    def state(self) -> dict[str, Any]:
        """Return all that it knows, as plain data."""
        return asdict(self._state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `state` says. Raises `BadCheckpoint`."""
        known = {one.name for one in fields(_State)}
        try:
            if not state.keys() <= known:
                raise TypeError(f"unknown {sorted(state.keys() - known)[0]!r}")
            self._state = _State(**state)
        except (AttributeError, TypeError) as error:
            raise BadCheckpoint(f"checkpoint: its alarms cannot be read: {error}") from None
