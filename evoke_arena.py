"""evoke-arena: the command `arena`. Checks first that the packages it is made of are its own.

Our packages have short names (`games`, `agents`, …), which other distributions use as well. Where one of
those comes first on the path, imports would mix two projects; the command says so and stops.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("games", "replays", "agents", "clients", "arena")
OPTIONAL = frozenset({"clients"})
MARK = '"""evoke-arena:'
"""How the `__init__.py` of each of our packages begins."""


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    trouble = shadowed()
    if trouble is not None:
        sys.stderr.write(f"Error: {trouble}\n")
        sys.exit(2)
    from arena.cli.main import cli

    cli()


def shadowed() -> str | None:
    """Return one line about the first package that is not ours, or None. Imports nothing."""
    home = Path(__file__).resolve().parent
    for package in PACKAGES:
        where = _origin(package)
        if where is None:
            if package in OPTIONAL:
                continue
            return f"package {package!r} is missing from {home}: install evoke-arena again"
        if where == home / package / "__init__.py":
            continue
        if package in OPTIONAL and not (home / package).exists() and not _is_ours(where):
            continue
        who = "another copy of evoke-arena" if _is_ours(where) else "another project"
        return (
            f"package {package!r} of evoke-arena ({home / package}) is hidden by {where}, which belongs to "
            f"{who}: take its folder out of PYTHONPATH or the current folder, or use a virtual environment "
            "of its own for evoke-arena"
        )
    return None


def _origin(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin is not None:
        return Path(spec.origin).resolve()
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]).resolve() if folders else None


def _is_ours(where: Path) -> bool:
    try:
        with where.open(encoding="utf-8", errors="replace") as file:
            return file.read(len(MARK)) == MARK
    except OSError:
        return False


if os.environ.get("VLLM_LOGGING_LEVEL") == "ERROR" and not os.environ.get("VLLM_LOGGING_CONFIG_PATH"):
    import logging

    # The processes that vLLM starts begin with this file, and warn before they have read that variable.
    logging.getLogger("vllm").setLevel(logging.ERROR)

if __name__ == "__main__":
    main()
