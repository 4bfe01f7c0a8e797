"""Writing a record: append-only, whole frames, crash-safe.

The encoder turns entries into bytes and knows no file; the writer puts them into one. A process killed at
any moment leaves a file that reads up to its last whole frame; `RecordWriter.reopen` cuts a torn tail off
and goes on.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from games.base import Event
from games.referee import Entry
from replays.codec import CHAIN_START, frame, link, pack
from replays.errors import NotCanonical, RecordDamaged, RecordWriteFailed
from replays.reader import open_record
from replays.record import Footer, Header, entry_to_data

PART_SUFFIX = ".part"
"""Ends the name of a record that is being written and is not in its place yet."""


class RecordEncoder:
    """Entries in, frames out; keeps the chain and counts the events."""

    def __init__(self, chain: bytes = CHAIN_START, events: int = 0) -> None:
        self.chain = chain
        self.events = events

    def header(self, header: Header) -> bytes:
        """Return the first frame."""
        return self._frame(["h", header.to_data()])

    def entries(self, entries: Iterable[Entry]) -> bytes:
        """Return the frames of inputs and events. Raises `NotCanonical` and then stands where it stood."""
        before = self.chain, self.events
        frames: list[bytes] = []
        try:
            for entry in entries:
                frames.append(self._frame(entry_to_data(entry)))
                self.events += isinstance(entry, Event)
        except NotCanonical:
            self.chain, self.events = before
            raise
        return b"".join(frames)

    def footer(self, footer: Footer) -> bytes:
        """Return the last frame; the chain and the number of events are filled in."""
        return self._frame(["f", replace(footer, chain=self.chain, events=self.events).to_data()])

    def _frame(self, row: list[object]) -> bytes:
        body = pack(row)
        self.chain = link(self.chain, body)
        return frame(body, self.chain)


class RecordWriter:
    """One record file being written.

    Args:
        path: must not exist yet; folders above it are made.
        header: written at once.
        durable: whether every write waits for the disk itself (survives a power cut), instead of for the
            operating system alone (survives the process).

    Raises `RecordWriteFailed`; the file then holds whole entries only, if it can be cut at all, and takes no
    more. A value that no record can hold raises `NotCanonical` and nothing of that call is written.
    """

    def __init__(self, path: Path, header: Header, *, durable: bool = False) -> None:
        encoder = RecordEncoder()
        first = encoder.header(header)
        try:
            file = _create(path)
        except OSError as error:
            raise _failed(path, error) from None
        self._set_up(path, file, encoder, 0, durable=durable)
        try:
            self._put(first)
            if durable:
                _sync_folder(path)
        except (OSError, RecordWriteFailed) as error:
            self._file.close()
            path.unlink(missing_ok=True)
            raise error if isinstance(error, RecordWriteFailed) else _failed(path, error) from None

    @classmethod
    def reopen(cls, path: Path, *, durable: bool = False) -> Self:
        """Return a writer that goes on after the last whole entry of a record that was cut short.

        Raises `NotARecord` where not even the header is whole (start anew), `RecordUnreadable`, and
        `RecordDamaged` where the record is finished, or damaged in its middle.
        """
        record, reader = open_record(path)
        if record.footer is not None:
            raise RecordDamaged(f"{path}: the record is finished, nothing can be added")
        if record.damage is not None and not record.damage.truncated:
            raise RecordDamaged(f"{path}: event {record.damage.event} is bad: {record.damage.reason}")
        writer = cls.__new__(cls)
        try:
            file = path.open("r+b", buffering=0)
            file.truncate(reader.good_bytes)
            file.seek(reader.good_bytes)
        except OSError as error:
            raise _failed(path, error) from None
        events = sum(isinstance(entry, Event) for entry in record.entries)
        encoder = RecordEncoder(reader.chain, events)
        writer._set_up(path, file, encoder, reader.good_bytes, durable=durable)
        return writer

    def _set_up(self, path: Path, file: FileIO, encoder: RecordEncoder, size: int, *, durable: bool) -> None:
        self.path = path
        self._file = file
        self._encoder = encoder
        self._size = size
        self._durable = durable

    @property
    def size(self) -> int:
        """Bytes of the record so far."""
        return self._size

    def write(self, entries: Iterable[Entry]) -> None:
        """Append entries; when this returns they survive the death of the process."""
        self._put(self._encoder.entries(entries))

    def finish(self, footer: Footer) -> None:
        """Append the footer and close the file."""
        self._put(self._encoder.footer(footer))
        self.close()

    def close(self) -> None:
        """Close the file; without a footer it reads as cut short."""
        try:
            self._file.close()
        except OSError as error:
            raise _failed(self.path, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, data: bytes) -> None:
        if self._file.closed:
            raise RecordWriteFailed(f"{self.path}: cannot write the record: it is closed")
        try:
            written = self._file.write(data) or 0
            while written < len(data):
                written += self._file.write(memoryview(data)[written:]) or 0
            if self._durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._give_up()
            raise _failed(self.path, error) from None
        self._size += len(data)

    def _give_up(self) -> None:
        # What was written of the last entries must not stay: an entry after a torn one would be lost.
        with suppress(OSError):
            self._file.truncate(self._size)
        with suppress(OSError):
            self._file.close()


def _create(path: Path) -> FileIO:
    try:
        return FileIO(path, "x")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileIO(path, "x")


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: Path, header: Header, entries: Sequence[Entry], footer: Footer) -> None:
    """Write a finished match as a record in one step: `path` then holds all of it, or what it held before.

    Raises `RecordWriteFailed`.
    """
    encoder = RecordEncoder()
    frames = [encoder.header(header), encoder.entries(entries), encoder.footer(footer)]
    part = path.with_name(f"{path.name}.{os.getpid()}{PART_SUFFIX}")
    try:
        try:
            part.write_bytes(b"".join(frames))
        except FileNotFoundError:
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(b"".join(frames))
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise _failed(path, error) from None


def _failed(path: Path, error: OSError) -> RecordWriteFailed:
    return RecordWriteFailed(f"{path}: cannot write the record: {error.strerror or error}")
