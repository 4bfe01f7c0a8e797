"""`arena policy chat`: what a model is told at a turn of a record, and what it answers."""

import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    policy_options,
    print_json,
    stdout_console,
)

if TYPE_CHECKING:
    from arena.policy_chat import Asking, Lens
    from arena.policy_chat_view import View
    from arena.policy_moments import Moment, Moments

MAX_SAMPLES = 1000
MAX_TEMPERATURE = 10.0
KEYS = "[n]ext  [p]revious  [a]sk  [t]emperature  [r]aw  [g]o to a ply  [q]uit"
HELP = """\
n, p        the next and the previous decision
a [N]       ask the configured policy, N answers
t X         set the temperature, 0 to 10; 0 takes the likeliest
r           the very string instead of the messages, and back
g PLY [S]   go to ply PLY, at seat S
q           quit"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--ply", type=int, metavar="N", help="Which ply.  [default: the first of a language model]")
@click.option("--seat", type=int, metavar="N", help="Which seat.")
@click.option(
    "--attempt",
    type=int,
    metavar="N",
    default=0,
    help="Which attempt, where it was asked again.  [default: 0]",
)
@click.option("--ask", is_flag=True, help="Ask the configured policy the same now.")
@click.option(
    "--samples",
    type=click.IntRange(1, MAX_SAMPLES),
    metavar="N",
    help="How many answers --ask draws.  [default: 1]",
)
@click.option("--adapter", metavar="A", help="The adapter that --ask plays: NAME or NAME@VERSION.")
@click.option("--temperature", type=float, metavar="T", help="Of --ask.  [default: policy.temperature]")
@click.option(
    "--style",
    type=click.Choice(["full", "compact"]),
    help="Of the prompt.  [default: as recorded, for --ask as configured]",
)
@click.option(
    "--mode",
    type=click.Choice(["direct", "one", "two"]),
    help="How it is asked.  [default: as recorded, for --ask as configured]",
)
@click.option(
    "--budget-tokens",
    type=int,
    metavar="N",
    help="Bound of the prompt.  [default: policy.budget_tokens, else the model's]",
)
@click.option("--raw", is_flag=True, help="The very string that the model continues, chat template and all.")
@policy_options
@home_option
@config_option
@json_option
@debug_option
def chat(
    file: Path,
    ply: int | None,
    seat: int | None,
    attempt: int,
    ask: bool,
    samples: int | None,
    adapter: str | None,
    temperature: float | None,
    style: Any,
    mode: Any,
    budget_tokens: int | None,
    raw: bool,
    backend: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Show exactly what a model is told and replies.

    FILE is a record; any turn of it can be shown. Without --ask it is the recorded decision: prompt, reply, tokens,
    what came of it. With --ask the configured policy gets the same turn now. The decision of a bot is shown with
    the prompt that a model would have got.

    On a terminal you can go on from there to other decisions, and ask as often as you like.
    """
    from arena.adapter_listing import adapters_in
    from arena.config import load
    from arena.policy_chat import Asking, Lens
    from arena.policy_chat_view import View, document
    from arena.policy_moments import read_moments

    if samples is not None and not ask:
        raise click.UsageError("--samples goes with --ask", click.get_current_context())
    moments = read_moments(file)
    if moments.damage:
        click.echo(f"Warning: {moments.damage}; decisions after that are lost.", err=True)
    flags = {
        "home": home,
        "policy.backend": backend,
        "policy.model": model,
        "policy.temperature": temperature,
        "policy.budget_tokens": budget_tokens,
    }
    settings = load(file=config_file, flags=flags).settings
    if adapter:
        adapters_in(settings.home).resolve(adapter)
    moment = moments.find(ply=ply, seat=seat, attempt=attempt)
    lens = Lens(settings.policy, home=settings.home, style=style, mode=mode)
    view = View(stdout_console(), raw=raw)
    with Asking(
        lens, adapter=adapter or "", loading=lambda: click.echo("Loading the model …", err=True)
    ) as asking:
        if as_json:
            how = lens.playing
            asked = asking.ask(moments, moment, how=how, samples=samples or 1) if ask else None
            calls = lens.recorded(moments, moment)
            print_json(document(moments, moment, calls, asked, raw=raw, lens=lens))
            return
        talk = _Talk(moments, moment, seat, lens, asking, view)
        if ask:
            talk.ask(samples or 1)
        else:
            talk.show()
        if at_terminal():
            talk.run()


def at_terminal() -> bool:
    """Whether somebody is there to answer a prompt."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class _Talk:
    """Where a person stands in a record, and what they asked for."""

    def __init__(
        self,
        moments: "Moments",
        moment: "Moment",
        seat: int | None,
        lens: "Lens",
        asking: "Asking",
        view: "View",
    ) -> None:
        self.moments = moments
        self.moment = moment
        self.seat = seat
        self.lens = lens
        self.asking = asking
        self.view = view
        self.playing = lens.playing

    def show(self) -> None:
        """Print the recorded decision."""
        calls = self.lens.recorded(self.moments, self.moment)
        self.view.moment(self.moments, self.moment)
        self.view.calls(calls)
        self.view.recorded(self.moments, self.moment)
        self._notes()

    def ask(self, samples: int) -> None:
        """Ask the configured policy, and print its answers and what was decided in the match."""
        asked = self.asking.ask(self.moments, self.moment, how=self.playing, samples=samples)
        self.view.moment(self.moments, self.moment)
        self.view.asked(asked)
        self.view.recorded(self.moments, self.moment)
        self._notes()

    def _notes(self) -> None:
        if self.lens.note:
            self.view.note(f"note: {self.lens.note}")

    def run(self) -> None:
        """Take one line after another, to the end of the input or `q`."""
        from games.errors import ArenaError

        click.echo(KEYS)
        while True:
            click.echo("> ", nl=False)
            line = sys.stdin.readline()
            if not line:
                click.echo()
                return
            word, *rest = line.split() or [""]
            if word in ("q", "quit", "exit"):
                return
            try:
                self._do(word, rest)
            except ArenaError as error:
                self.view.note(str(error))

    def _do(self, word: str, rest: list[str]) -> None:
        """Do what one line says; what is none of the commands gets the list of them."""
        numbers = [_number(text) for text in rest]
        wholes = [int(one) for one in numbers if one is not None and one == int(one)]
        all_whole = len(wholes) == len(rest)
        if word == "":
            click.echo(KEYS)
        elif word in ("n", "next") and not rest:
            self._step(1)
        elif word in ("p", "previous") and not rest:
            self._step(-1)
        elif word in ("a", "ask") and len(rest) < 2 and all_whole:
            self._ask_again(wholes[0] if wholes else 1)
        elif word in ("t", "temperature") and len(rest) < 2 and None not in numbers:
            self._set_temperature(numbers[0] if numbers else None)
        elif word in ("r", "raw") and not rest:
            self.view.raw = not self.view.raw
            self.show()
        elif word in ("g", "go") and len(rest) in (1, 2) and all_whole:
            self.moment = self.moments.find(ply=wholes[0], seat=wholes[1] if rest[1:] else self.seat)
            self.show()
        else:
            click.echo(HELP)

    def _ask_again(self, samples: int) -> None:
        if not 1 <= samples <= MAX_SAMPLES:
            self.view.note(f"answers: got {samples}, allowed are 1 to {MAX_SAMPLES}")
            return
        self.ask(samples)

    def _set_temperature(self, value: float | None) -> None:
        if value is None:
            self.view.note(f"the temperature is {self.playing.temperature:g}; t 0.7 sets it")
        elif not 0 <= value <= MAX_TEMPERATURE:
            self.view.note(f"temperature: got {value:g}, allowed are 0 to {MAX_TEMPERATURE:g}")
        else:
            self.playing = replace(self.playing, temperature=value)
            self.view.note(f"the temperature is {value:g}; a asks with it")

    def _step(self, by: int) -> None:
        places = [moment.index for moment in self.moments.listed(seat=self.seat)]
        ahead = [at for at in places if (at > self.moment.index if by > 0 else at < self.moment.index)]
        if not ahead:
            self.view.note("this is the last decision" if by > 0 else "this is the first decision")
            return
        self.moment = self.moments.all[ahead[0] if by > 0 else ahead[-1]]
        self.show()


def _number(text: str) -> float | None:
    """Return a number that a person wrote, None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
