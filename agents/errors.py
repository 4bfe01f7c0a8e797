"""Errors of agents.

games.errors.ArenaError
├── PlayerError
│   ├── BadPlayer           a player's name or spec that means nothing
│   ├── PlayerNotAvailable  a kind of player that this version does not have
│   ├── PlayerCannotPlay    the player does not play this game
│   └── BadParameter        a setting of a player outside its range
└── AnalysisError
    ├── NotSolvable         exact play is computed for small two-seat zero-sum games with one turn at a time
    └── BadPolicy           a policy that gives no probabilities over the actions
"""

from games.errors import ArenaError


class PlayerError(ArenaError):
    """Something is wrong with a player as it was written."""

    code = "player"
    exit_code = 2


class BadPlayer(PlayerError):
    """A player's name or spec that means nothing."""

    code = "bad_player"


class PlayerNotAvailable(PlayerError):
    """A kind of player that this version does not have."""

    code = "player_not_available"


class PlayerCannotPlay(PlayerError):
    """The player does not play this game."""

    code = "player_cannot_play"


class BadParameter(PlayerError):
    """A setting of a player outside its range."""

    code = "bad_parameter"


class AnalysisError(ArenaError):
    """Something cannot be computed exactly."""

    code = "analysis"
    exit_code = 2


class NotSolvable(AnalysisError):
    """The game is too large, or not a two-seat zero-sum game with one turn at a time."""

    code = "not_solvable"


class BadPolicy(AnalysisError):
    """A policy that gives no probabilities over the actions."""

    code = "bad_policy"
