"""Logs go to stderr, one line each, and never hold a token."""

import logging
import sys

from arena.auth import redact


class Redacting(logging.Formatter):
    """Takes the secret part of tokens out of whatever is logged, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure(*, debug: bool = False, verbose: bool = False) -> None:
    """Send the project's log to stderr: warnings; with `verbose` what goes on; with `debug` everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacting("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("arena")
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING)
    root.propagate = False
