"""Errors of the rules, and the base of every error in the project.

    ArenaError                  code, exit_code; str(error) is one clear line
    └── GameError
        ├── UnknownGame         no such game is registered
        ├── BadSeats            the game is not played by so many
        ├── BadOption           an option is unknown, malformed or breaks a rule of the set-up
        ├── BadSeed             a seed outside 0 … 2**63 - 1
        ├── BadSpace            data that describes no action space
        ├── IllegalAction       an action outside its space, or a seat that has no turn
        ├── MatchOver           an action after the end
        ├── BadChance           a recorded draw that the rules did not ask for
        ├── ChanceNeeded        the given draws ran out (tree walks branch here)
        ├── RulesVersionMismatch  saved under other rules than those installed
        └── BadTask             data that describe no task
            ├── TaskTooBig      beyond a bound on bytes, depth or number of things
            ├── TaskVersion     written for another version of the task format
            ├── BadGoal         a goal outside the goal language, or about what the world lacks
            └── BadLayout       a world that cannot be

Other packages put their trees below `ArenaError` in their own `errors.py`.
"""

from typing import ClassVar


class ArenaError(Exception):
    """Base of all errors that are meant for a person: `str(error)` is one clear line.

    `code` is stable and part of the public contract; `exit_code` is what the command line returns:
    1 failed, 2 bad input, 3 verification mismatch.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1


class GameError(ArenaError):
    """Something the rules refuse."""

    code = "game"
    exit_code = 2


class UnknownGame(GameError):
    """No game of that name is registered."""

    code = "unknown_game"


class BadSeats(GameError):
    """The game is not played by so many seats."""

    code = "bad_seats"


class BadOption(GameError):
    """An option is unknown, malformed or breaks a rule of the set-up."""

    code = "bad_option"


class BadSeed(GameError):
    """A seed outside 0 … 2**63 - 1."""

    code = "bad_seed"


class BadSpace(GameError):
    """Data that describes no action space."""

    code = "bad_space"


class IllegalAction(GameError):
    """An action outside its space, or from a seat that has no turn."""

    code = "illegal_action"


class MatchOver(GameError):
    """An action after the end."""

    code = "match_over"


class BadChance(GameError):
    """A recorded draw that the rules did not ask for, or cannot have made."""

    code = "bad_chance"
    exit_code = 3


class ChanceNeeded(GameError):
    """The given draws ran out; `outcomes` is how many the next draw has."""

    code = "chance_needed"

    def __init__(self, outcomes: int) -> None:
        super().__init__(f"a draw among {outcomes} outcomes is needed, none is left")
        self.outcomes = outcomes


class RulesVersionMismatch(GameError):
    """Saved under other rules than those installed."""

    code = "rules_version"
    exit_code = 3


class BadTask(GameError):
    """Data that describe no task."""

    code = "bad_task"


class TaskTooBig(BadTask):
    """A task beyond a bound on bytes, depth or number of things."""

    code = "task_too_big"


class TaskVersion(BadTask):
    """A task written for another version of the task format."""

    code = "task_version"


class BadGoal(BadTask):
    """A goal outside the goal language, or about something that the world does not have."""

    code = "bad_goal"


class BadLayout(BadTask):
    """A layout of a world that cannot be."""

    code = "bad_layout"
