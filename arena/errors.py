"""Errors of hosting and the command line.

games.errors.ArenaError
├── ScheduleError           players, seats or results from which no schedule can be made
├── RatingError             match results that contradict themselves, or an unknown anchor
├── SprtError               a sequential test that is malformed, or a score outside its steps
├── WorkerError             worker processes that cannot live
├── StoreError              the database cannot be opened, read or written
│   └── StoreTooNew         written by a newer version
├── TournamentError         a tournament that cannot be run as it was asked for
├── ConfigError             a configuration file or value that cannot be used
├── TokenError              a token that cannot be made, or is not there
├── EvolveError             a run of `arena evolve` that cannot be done as it was asked for
├── TrainError              a run of `arena train` that cannot be done as it was asked for
│   └── TrainStopped        one that cannot go on: an alarm, or too many matches that failed
├── MatchAbandoned          a match whose players are all gone after the server was started again
├── ServeError              a server that cannot run as it was asked for
└── RequestRefused          what a client asked for is refused; has a wire `code`
"""

from games.errors import ArenaError


class ScheduleError(ArenaError):
    """Players, seats or results from which no schedule can be made."""

    code = "schedule"
    exit_code = 2


class RatingError(ArenaError):
    """Match results that contradict themselves, or an unknown anchor."""

    code = "rating"
    exit_code = 2


class SprtError(ArenaError):
    """A sequential test that is malformed, or a score outside its steps."""

    code = "sprt"
    exit_code = 2


class WorkerError(ArenaError):
    """Worker processes that cannot live."""

    code = "worker"


class StoreError(ArenaError):
    """The database cannot be opened, read or written."""

    code = "store"


class StoreTooNew(StoreError):
    """Written by a newer version."""

    code = "store_too_new"
    exit_code = 2


class TournamentError(ArenaError):
    """A tournament that cannot be run as it was asked for."""

    code = "tournament"
    exit_code = 2


class ConfigError(ArenaError):
    """A configuration file or value that cannot be used."""

    code = "config"
    exit_code = 2


class TokenError(ArenaError):
    """A token that cannot be made, or is not there."""

    code = "token"
    exit_code = 2


class EvolveError(ArenaError):
    """A run of `arena evolve` that cannot be done as it was asked for."""

    code = "evolve"
    exit_code = 2


class TrainError(ArenaError):
    """A run of `arena train` cannot be done as it was asked for."""

    code = "train"
    exit_code = 2


class TrainStopped(TrainError):
    """A run of `arena train` that cannot go on: an alarm, or too many matches that failed."""

    code = "train_stopped"
    exit_code = 1


class MatchAbandoned(ArenaError):
    """A match whose players are all gone after the server was started again."""

    code = "match_abandoned"


class ServeError(ArenaError):
    """A server that cannot run as it was asked for."""

    code = "serve"
    exit_code = 2


class RequestRefused(ArenaError):
    """What a client asked for is refused. `wire` is one of `clients.protocol.messages.ERROR_CODES`."""

    code = "request_refused"

    def __init__(self, wire: str, message: str) -> None:
        super().__init__(message)
        self.wire = wire
