"""Errors of agents.

games.errors.ArenaError
├── PlayerError
│   ├── BadPlayer           a player's name or spec that means nothing
│   ├── PlayerNotAvailable  a kind of player that this version does not have
│   ├── PlayerCannotPlay    the player does not play this game
│   └── BadParameter        a setting of a player outside its range
├── PolicyError             the model behind a seat gave no answer
│   ├── EngineMissing       the back end is not installed here
│   ├── EngineFailed        the back end died or refused; it may come back
│   ├── EngineBusy          the back end had no room for the request in time
│   ├── PromptTooLong       the prompt leaves no room for an answer
│   ├── UnknownAdapter      no such adapter version
│   ├── BadAdapter          an adapter version that is damaged, or made for another model
│   └── BadModel            the model cannot be loaded
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


class PolicyError(ArenaError):
    """The model behind a seat gave no answer."""

    code = "policy"


class EngineMissing(PolicyError):
    """The back end is not installed here."""

    code = "engine_missing"
    exit_code = 2


class EngineFailed(PolicyError):
    """The back end died or refused; it may come back."""

    code = "engine_failed"


class EngineBusy(PolicyError):
    """The back end had no room for the request in time."""

    code = "engine_busy"


class PromptTooLong(PolicyError):
    """The prompt leaves no room for an answer."""

    code = "prompt_too_long"


class UnknownAdapter(PolicyError):
    """No such adapter version."""

    code = "unknown_adapter"
    exit_code = 2


class BadAdapter(PolicyError):
    """An adapter version that is damaged, or made for another model."""

    code = "bad_adapter"
    exit_code = 2


class BadModel(PolicyError):
    """The model cannot be loaded."""

    code = "bad_model"
    exit_code = 2


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
