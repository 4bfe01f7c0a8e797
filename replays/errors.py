"""Errors of records.

ArenaError
└── RecordError
    ├── RecordUnreadable    the file cannot be opened or read
    ├── NotARecord          its first bytes are no record's
    ├── RecordTooNew        written under a newer schema than this version knows
    ├── RecordDamaged       a bad event where an undamaged record is needed
    ├── RecordWriteFailed   the file cannot be created or written (disk full, no permission)
    └── NotCanonical        a value that no record can hold
"""

from games.errors import ArenaError


class RecordError(ArenaError):
    """Something is wrong with a record."""

    code = "record"
    exit_code = 2


class RecordUnreadable(RecordError):
    """The file cannot be opened or read."""

    code = "record_unreadable"


class NotARecord(RecordError):
    """The first bytes are no record's."""

    code = "not_a_record"


class RecordTooNew(RecordError):
    """Written under a newer schema than this version knows."""

    code = "record_too_new"


class RecordDamaged(RecordError):
    """A bad event where an undamaged record is needed."""

    code = "record_damaged"
    exit_code = 3


class RecordWriteFailed(RecordError):
    """The file cannot be created or written."""

    code = "record_write_failed"
    exit_code = 1


class NotCanonical(RecordError):
    """A value that no record can hold."""

    code = "not_canonical"
