"""What every test is run with."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
"""How long an example takes says something of the machine, and nothing of what is tested."""


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Give back the project's logger as it was: a command run in this process sets it up for itself."""
    logger = logging.getLogger("arena")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
