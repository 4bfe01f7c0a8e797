"""Reading a record: every whole entry up to the first bad or missing one, and what is wrong there."""

import hashlib
from pathlib import Path
from typing import Any

from games.base import Event
from replays.codec import CHAIN_BYTES, CHAIN_START, CHECK_BYTES, link, unpack
from replays.errors import NotARecord, NotCanonical, RecordDamaged, RecordTooNew, RecordUnreadable
from replays.record import SCHEMA, Damage, Footer, Header, Record, entry_from_data

LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
"""msgpack's first byte of a `bin`, and the bytes of its length."""

_SEARCH_BYTES = 2**16
_HEADER_BYTES = 2**16
"""What is read for a header alone; one that is longer costs another look."""

_UNREADABLE = (NotCanonical, ValueError, TypeError, KeyError, IndexError, RecursionError)
"""What a body raises that is no entry."""


def read_bytes(path: Path) -> bytes:
    """Return the file's bytes. Raises `RecordUnreadable` in one line."""
    try:
        if path.is_char_device():  # reading it may never end
            raise RecordUnreadable(f"{path}: cannot read the record: it is a device, a record is a file")
        return path.read_bytes()
    except OSError as error:
        raise RecordUnreadable(f"{path}: cannot read the record: {error.strerror or error}") from None
    except ValueError as error:  # a path that no file can have
        raise RecordUnreadable(f"{str(path)!r}: cannot read the record: {error}") from None


def read_record(path: Path, *, strict: bool = False) -> Record:
    """Return the record, up to its last whole entry; `record.damage` says what came after it, if anything.

    Args:
        path: the file.
        strict: raise `RecordDamaged` instead where anything is wrong or missing.

    Raises `RecordUnreadable`, `NotARecord` or `RecordTooNew`.
    """
    record = open_record(path)[0]
    if strict and record.damage is not None:
        raise RecordDamaged(f"{path}: event {record.damage.event}: {record.damage.reason}")
    return record


def open_record(path: Path) -> "tuple[Record, FrameReader]":
    """Return the record and the reader that stands after its last whole entry; raises as `read_record`."""
    reader = FrameReader(read_bytes(path))
    try:
        return reader.read(), reader
    except (NotARecord, RecordTooNew) as error:
        raise type(error)(f"{path}: {error}") from None


def read_header(path: Path) -> Header:
    """Return a record's header alone: of a long record only the first bytes are read.

    Raises `RecordUnreadable`, `NotARecord` or `RecordTooNew`.
    """
    try:
        with path.open("rb") as opened:
            start = opened.read(_HEADER_BYTES)
    except (OSError, ValueError) as error:
        raise RecordUnreadable(f"{path}: cannot read the record: {error}") from None
    try:
        return FrameReader(start).header()
    except (NotARecord, RecordTooNew) as error:
        if len(start) < _HEADER_BYTES:
            raise type(error)(f"{path}: {error}") from None
    return open_record(path)[0].header


class FrameReader:
    """Walks the frames of one record. After `read`, `good_bytes` and `chain` stand after the last whole one."""

    def __init__(self, data: bytes) -> None:
        self.good_bytes = 0
        self.chain = CHAIN_START
        self._data = data
        self._next = CHAIN_START
        self._end = 0

    def read(self) -> Record:
        """Return the record. Raises `NotARecord` or `RecordTooNew` (without the file's name)."""
        record = Record(self.header())
        events = 0
        try:
            while self.good_bytes < len(self._data):
                if record.footer is not None:
                    raise _Bad("bytes follow the footer")
                row, body = self._frame()
                if isinstance(row, list) and row[:1] == ["f"]:
                    record.footer = self._footer(row, events)
                    continue
                entry = entry_from_data(row)
                self._accept()
                events += isinstance(entry, Event)
                record.entries.append(entry)
                record.bodies.append(body)
            if record.footer is None:
                raise _Bad("the record ends here without a footer: it was cut short", truncated=True)
        except _Bad as bad:
            record.damage = Damage(events, str(bad), bad.truncated)
        except _UNREADABLE as error:
            record.damage = Damage(events, f"the entry cannot be read: {str(error)[:100]}")
        return record

    def header(self) -> Header:
        """Return the header, which comes first. Raises `NotARecord` or `RecordTooNew`."""
        if not self._data:
            raise NotARecord("the file is empty, no arena record")
        try:
            row, _ = self._frame()
            if not isinstance(row, list) or len(row) != 2 or row[0] != "h" or not isinstance(row[1], dict):
                raise _Bad("no header")
            schema = row[1]["schema"]
            if type(schema) is int and schema > SCHEMA:
                raise RecordTooNew(
                    f"written under record schema {schema}, this version reads up to {SCHEMA}: "
                    f"upgrade evoke-arena"
                )
            header = Header.from_data(row[1])
            if header.schema < 1:
                raise _Bad(f"schema {header.schema}")
        except (_Bad, *_UNREADABLE) as error:
            raise NotARecord(f"no arena record, or its first bytes are damaged ({str(error)[:80]})") from None
        self._accept()
        return header

    def _footer(self, row: list[Any], events: int) -> Footer:
        if len(row) != 2:
            raise _Bad("the footer cannot be read")
        footer = Footer.from_data(row[1])
        if footer.chain != self.chain:
            raise _Bad("the footer's chain is not that of the entries before it")
        if footer.events != events:
            raise _Bad(f"the footer counts {footer.events} events, {events} are here")
        self._accept()
        return footer

    def _frame(self) -> tuple[Any, bytes]:
        data, at = self._data, self.good_bytes
        width = LENGTH_BYTES.get(data[at])
        if width is None:
            raise _Bad("no entry starts here")
        start = at + 1 + width
        length = int.from_bytes(data[at + 1 : start], "big")
        end = start + length
        if start > len(data) or end > len(data):
            if self._whole_frame_follows():
                raise _Bad("the entry's length is damaged")
            raise _Bad("the entry is torn: the record was cut short here", truncated=True)
        body, check = data[start : end - CHECK_BYTES], data[end - CHECK_BYTES : end]
        self._next = link(self.chain, body)
        if length < CHECK_BYTES or self._next[:CHECK_BYTES] != check:
            raise _Bad("the hash chain breaks here")
        if width != _shortest(length):
            raise _Bad("the entry's length is not written the shortest way")
        self._end = end
        return unpack(body), body

    def _accept(self) -> None:
        self.chain = self._next
        self.good_bytes = self._end

    def _whole_frame_follows(self) -> bool:
        # An entry that claims to reach beyond the file is torn by a crash, or its length was damaged. In the
        # second case a body that the chain accepts still lies there, and what follows must not be cut off.
        data, stop = self._data, min(len(self._data), self.good_bytes + _SEARCH_BYTES)
        for width in LENGTH_BYTES.values():
            start = self.good_bytes + 1 + width
            hashed = hashlib.blake2b(self.chain, digest_size=CHAIN_BYTES)
            for end in range(start, stop - CHECK_BYTES + 1):
                if hashed.digest()[:CHECK_BYTES] == data[end : end + CHECK_BYTES]:
                    return True
                hashed.update(data[end : end + 1])
        return False


class _Bad(Exception):
    def __init__(self, reason: str, *, truncated: bool = False) -> None:
        super().__init__(reason)
        self.truncated = truncated


def _shortest(length: int) -> int:
    return 1 if length < 2**8 else 2 if length < 2**16 else 4
