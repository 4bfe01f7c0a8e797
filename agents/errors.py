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
├── JudgeError              a judge that gave no answer, or was asked what cannot be asked
│   ├── BadCase             data that describe no case, or a question that there is not
│   ├── JudgeTimeout        the model judge did not answer in time
│   ├── JudgeUnreadable     the model judge answered what is no answer
│   ├── JudgeSilent         the model judge's back end failed
│   └── QueueError          the person's queue: no such case, or answered otherwise before
│       └── QueueTooNew     written by a newer version
├── CurriculumError         a curriculum that cannot be, or found no task
│   └── BadCurriculum       a curriculum's configuration that means nothing
├── TrainingError           training cannot go on
│   ├── BadRollout          a record that nothing can be learned from: other rules, cut short, tokens of another model
│   ├── BadLearner          a learner's settings or model that mean nothing
│   ├── NotFinite           a loss, a gradient or an input that is no finite number; nothing was learned from it
│   ├── CheckpointFailed    a checkpoint or trained weights cannot be written; the last good ones are kept
│   └── BadCheckpoint       a checkpoint that cannot be gone on from
├── BadExperience           a record that the experience store cannot take, or a question that means nothing to it
├── MemoryFault             the experience store cannot be opened, read or written
│   └── MemoryTooNew        written by a newer version
├── CreditError             a team's result cannot be divided as it was asked for
│   ├── BadCredit           a method, team or setting of credit that there is not
│   ├── RecordNotCredited   a record that is cut short or made under other rules
│   ├── NotRebuilt          a recorded player that nobody here can play on for
│   └── BadLabels           a judge of steps that is damaged, or does not know the game
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


class BadExperience(ArenaError):
    """A record that the experience store cannot take, or a question that means nothing to it."""

    code = "bad_experience"
    exit_code = 2


class MemoryFault(ArenaError):
    """The experience store cannot be opened, read or written."""

    code = "memory"


class MemoryTooNew(MemoryFault):
    """Written by a newer version."""

    code = "memory_too_new"
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


class JudgeError(ArenaError):
    """A judge gave no answer, or was asked what cannot be asked."""

    code = "judge"


class BadCase(JudgeError):
    """Data that describe no case, or a question that there is not."""

    code = "bad_case"
    exit_code = 2


class JudgeTimeout(JudgeError):
    """The model judge did not answer in time."""

    code = "judge_timeout"


class JudgeUnreadable(JudgeError):
    """The model judge answered what is no answer."""

    code = "judge_unreadable"


class JudgeSilent(JudgeError):
    """The model judge's back end failed."""

    code = "judge_silent"


class QueueError(JudgeError):
    """The person's queue has no such case, or it was answered otherwise before."""

    code = "judge_queue"
    exit_code = 2


class QueueTooNew(QueueError):
    """The queue was written by a newer version."""

    code = "judge_queue_too_new"


class CurriculumError(ArenaError):
    """The curriculum could not go on."""

    code = "curriculum"


class BadCurriculum(CurriculumError):
    """A curriculum's configuration that means nothing."""

    code = "bad_curriculum"
    exit_code = 2


class CreditError(ArenaError):
    """A team's result cannot be divided as it was asked for."""

    code = "credit"
    exit_code = 2


class BadCredit(CreditError):
    """A method, team or setting of credit that there is not."""

    code = "bad_credit"


class RecordNotCredited(CreditError):
    """A record that is cut short, or was made under other rules."""

    code = "record_not_credited"


class NotRebuilt(CreditError):
    """A recorded player that nobody here can play on for."""

    code = "not_rebuilt"


class BadLabels(CreditError):
    """A judge of steps that is damaged, or does not know the game."""

    code = "bad_labels"


class TrainingError(ArenaError):
    """Training cannot go on."""

    code = "training"


class BadRollout(TrainingError):
    """A record that nothing can be learned from: of other rules, cut short, or with tokens of another model."""

    code = "bad_rollout"
    exit_code = 2


class BadLearner(TrainingError):
    """A learner's settings or model that mean nothing."""

    code = "bad_learner"
    exit_code = 2


class NotFinite(TrainingError):
    """A loss, a gradient or an input is no finite number; nothing was learned from it."""

    code = "not_finite"


class CheckpointFailed(TrainingError):
    """A checkpoint or trained weights cannot be written; the last good ones are kept."""

    code = "checkpoint_failed"


class BadCheckpoint(TrainingError):
    """A checkpoint that cannot be gone on from."""

    code = "bad_checkpoint"
    exit_code = 2
