"""`arena doctor`: what is installed, which back ends work, what is misconfigured, with the mend."""

import sys
from pathlib import Path

import click

from arena.cli.common import config_option, debug_option, home_option, json_option, print_json

MARKS = {"ok": "ok", "absent": "-", "broken": "BROKEN"}


@click.command()
@home_option
@config_option
@json_option
@debug_option
def doctor(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Say what works here, and how to mend what does not.

    Every back end of policies is really imported, which takes a while for vLLM. Exit code 1 where something that the
    configuration needs does not work; what is merely not installed is no fault.
    """
    from dataclasses import asdict

    from arena import doctor as checking

    if sys.stderr.isatty():
        click.echo("Importing the back ends …", err=True)
    checks = checking.examine(home=home, config_file=config_file, probe=checking.run_probe)
    failing = [check for check in checks if check.fails]
    if as_json:
        print_json({"ok": not failing, "checks": [asdict(check) for check in checks]})
    else:
        group = ""
        for check in checks:
            if check.group != group:
                group = check.group
                click.echo(group)
            mark = "BROKEN" if check.fails else MARKS[check.state]
            click.echo(f"  {mark:<7}{check.name}: {check.found}")
            if check.mend:
                click.echo(f"         mend: {check.mend}")
        told = (
            f"{len(failing)} of what the configuration needs does not work"
            if failing
            else "all that is needed works"
        )
        click.echo(told)
    if failing:
        raise click.exceptions.Exit(1)
