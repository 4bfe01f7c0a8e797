"""From what a seat observed to chat messages, within a budget of tokens.

The prompt is laid out so that turns share what they can: first the system message (rules and role, the same on
every turn), then the public history (each turn's begins with the last one's), then what only this seat knows,
where the match stands and the question. `docs/prompting.md` states the layout and the budget's rule.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from agents.base import Seat
from agents.errors import PromptTooLong
from agents.prompting.budget import Fitted, Telling
from agents.prompting.chat import Message
from agents.prompting.template import Style, Template, Want, one_line, without_tokens
from games.base import EVERYONE, Event
from games.referee import Turn

STYLES = ("full", "compact")
MAX_ATTEMPTS = 8
"""Texts side by side may have more tokens than each for itself; so often is the room made smaller."""

_TEMPLATES = {
    ("avalon", "full"): "agents.prompting.full_avalon:FullAvalon",
    ("avalon", "compact"): "agents.prompting.compact_avalon:CompactAvalon",
    ("werewolf", "full"): "agents.prompting.full_werewolf:FullWerewolf",
    ("werewolf", "compact"): "agents.prompting.compact_werewolf:CompactWerewolf",
    ("kuhn", "full"): "agents.prompting.full_kuhn:FullKuhn",
    ("kuhn", "compact"): "agents.prompting.compact_kuhn:CompactKuhn",
    ("forge", "full"): "agents.prompting.full_forge:FullForge",
    ("forge", "compact"): "agents.prompting.compact_forge:CompactForge",
}
_ANY = {"full": "agents.prompting.full:FullTemplate", "compact": "agents.prompting.compact:CompactTemplate"}

NOTHING = Fitted(())


class Prompt(NamedTuple):
    """A prompt in its parts; the user message is `history + private + now`.

    Of the events in `history` the oldest `brief` are told in brief, and of those the oldest `left_out` not at all.
    `tokens` is about what `history` and `private` take.
    """

    system: str
    history: str
    private: str
    now: str
    brief: int = 0
    left_out: int = 0
    tokens: int = 0

    @property
    def user(self) -> str:
        """The user message."""
        return self.history + self.private + self.now


class Prompter:
    """Writes the prompts of one seat of one match: a fold of its events, like an agent's memory.

    Args:
        seat: where it sits.
        style: `full` for language models that read prose, `compact` for the tiny model.
        budget_tokens: bound of all messages' contents together; a chat template's own tokens come on top.
        count: about how many tokens a text has.
    """

    def __init__(self, seat: Seat, *, style: Style, budget_tokens: int, count: Callable[[str], int]) -> None:
        self.seat = seat
        self.style = style
        self.budget_tokens = budget_tokens
        self._count = count
        self._view = seat.game.view(seat.seat)
        self._system = ("", 0)
        self.template = make_template(seat, style=style)
        self.version = f"{seat.game.name}/{style}/{self.template.number}"
        left_out, summary = self.template.left_out, self.template.summary
        self._public = Telling(count, left_out=left_out, summary=summary)
        self._private = Telling(count, left_out=left_out, summary=summary)

    def observe(self, events: Sequence[Event]) -> None:
        """Fold in new events; one that this seat may not see is passed over."""
        template, view = self.template, self._view
        for event in events:
            if not event.visible_to(self.seat.seat):
                continue
            view.update(event)
            if event.audience is EVERYONE:
                line, telling = template.public(event, view), self._public
            else:
                line, telling = template.private(event, view), self._private
            if line is not None:
                brief = None if line.brief is None else one_line(line.brief)
                telling.add(line._replace(whole=one_line(line.whole), brief=brief))

    def messages(self, turn: Turn, *, want: Want, thought: str = "") -> tuple[Message, ...]:
        """Return the chat for `turn`: a system and a user message.

        With a `thought` (of an earlier reply to `want="thought"`) and `want="action"`, that call's messages are
        repeated, followed by the thought (cut between words where the budget ends) as the assistant's and the
        question for the bare answer.

        Raises `PromptTooLong` where not even the rules and the question fit the budget.
        """
        if want != "action" or not thought.strip():
            prompt = self.prompt(turn, want=want)
            return Message("system", prompt.system), Message("user", prompt.user)
        asked = self.messages(turn, want="thought")
        ask = "\n".join(map(one_line, self.template.again(turn, self._view)))
        left = self.budget_tokens - self._count(ask) - sum(self._count(message.content) for message in asked)
        kept = self._cut(without_tokens(thought), left)
        if not kept:
            return self.messages(turn, want="action")
        return (*asked, Message("assistant", kept), Message("user", ask))

    def prompt(self, turn: Turn, *, want: Want) -> Prompt:
        """Return the prompt for `turn` in its parts. Raises `PromptTooLong`."""
        count, budget = self._count, self.budget_tokens
        system = self.template.system(self._view)
        now = "\n".join(map(one_line, self.template.now(turn, self._view, want=want)))
        # An eighth of the budget is set aside for the turn (and another for a thought to come), so that the
        # history's room, and with it what is told in brief, does not depend on which question is asked.
        fixed = self._count_system(system)
        for_thought = budget // 8 if want == "thought" else 0
        room = budget - fixed - max(count(now), budget // 8) - for_thought
        for attempt in range(MAX_ATTEMPTS):
            told = self._told(system, now, -1 if attempt == MAX_ATTEMPTS - 1 else room)
            over = fixed + count(told.user) - budget
            if over <= 0:
                return told
            room = min(room, told.tokens) - over
        raise PromptTooLong(
            f"prompt {self.version}: the budget is {budget} tokens, the rules and the question alone take "
            f"{fixed + count(now)}"
        )

    def _told(self, system: str, now: str, room: int) -> Prompt:
        """Return the prompt with about `room` tokens of events; a third of them at most is the private part's."""
        gap = self.template.gap
        heads = self.template.heads()
        private, private_cost = self._fit(self._private, heads[1], room // 3)
        public, public_cost = self._fit(self._public, heads[0], room - private_cost)
        history = heads[0] + public.text if public.lines else ""
        known = (gap if history else "") + heads[1] + private.text if private.lines else ""
        return Prompt(
            system=system,
            history=history,
            private=known,
            now=(gap if history or known else "") + now,
            brief=public.brief,
            left_out=public.left_out,
            tokens=private_cost + public_cost,
        )

    def _fit(self, telling: Telling, head: str, room: int) -> tuple[Fitted, int]:
        """Return what `telling` tells within `room` tokens, and what it takes, heading included."""
        if not len(telling):
            return NOTHING, 0
        around = self._count(self.template.gap + head)
        fitted = telling.fit(room - around)
        if fitted is None:
            return Fitted((), len(telling), len(telling)), 0
        return fitted, (around + fitted.tokens if fitted.lines else 0)

    def _count_system(self, system: str) -> int:
        if self._system[0] != system:
            self._system = (system, self._count(system))
        return self._system[1]

    def _cut(self, text: str, room: int) -> str:
        """Return the beginning of `text` that has at most `room` tokens, cut between words."""
        if self._count(text) <= room:
            return text
        words = text.split(" ")
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            if self._count(" ".join(words[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        return " ".join(words[:low]).rstrip()


def make_template(seat: Seat, *, style: Style) -> Template:
    """Return the template of a game in a style: its own, else the one for every game."""
    module, _, name = _TEMPLATES.get((seat.game.name, style), _ANY[style]).partition(":")
    made: Template = getattr(import_module(module), name)(seat)
    return made
