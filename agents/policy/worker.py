"""The process that computes for `agents.policy.transformers_engine`.

A model runs thousands of small operations a second, and between two of them Python must have its lock: in the arena's
own process they would wait for the arena, and the arena for them. So the decoder has a process of its own, which
speaks to the arena over one socket. It ends when the socket does, or when it has told what went wrong.

Whoever holds the other end started this process and is trusted: messages are pickled.
"""

import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from agents.errors import BadModel, EngineFailed, PolicyError
from agents.policy.base import Completion, Request
from agents.policy.chat import one_line
from agents.policy.local_model import LocalModel, TransformersSettings

if TYPE_CHECKING:
    from agents.policy.decoder import Decoder, Job

TELL_S = 0.1
"""How old what is known of the work may be, where nothing else is told meanwhile."""
_SIZE = Struct("!Q")
_READ_BYTES = 1 << 20


class Given(NamedTuple):
    """To the worker: a request. `queued_at` is by `time.monotonic`, which both processes share."""

    number: int
    request: Request
    queued_at: float


class Withdrawn(NamedTuple):
    """To the worker: nobody waits for these requests any more."""

    numbers: tuple[int, ...]


class Publish(NamedTuple):
    """To the worker: an adapter version."""

    number: int
    version: str
    path: str


class Loaded(NamedTuple):
    """From the worker: the model is there. `tokenizer` is its tokenizer's file, as text."""

    name: str
    context_tokens: int
    tokenizer: str


class Told(NamedTuple):
    """From the worker: answers by number (None where something is done), and counters and gauges by name."""

    answers: Sequence[tuple[int, Completion | PolicyError | None]]
    facts: dict[str, float]


class Note(NamedTuple):
    """From the worker: for whoever looks for a fault."""

    text: str


class Broken(NamedTuple):
    """From the worker, its last: it ends."""

    reason: PolicyError


def framed(messages: Sequence[Any]) -> bytes:
    """Return messages as they are sent together."""
    data = pickle.dumps(messages, protocol=pickle.HIGHEST_PROTOCOL)
    return _SIZE.pack(len(data)) + data


class Frames:
    """Puts messages together again from what arrives in pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes in, and yield the messages that are whole."""
        self._data += data
        while len(self._data) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._data)
            end = _SIZE.size + size
            if len(self._data) < end:
                return
            messages = pickle.loads(memoryview(self._data)[_SIZE.size : end].toreadonly())
            del self._data[:end]
            yield from messages


class Gone(Exception):
    """The other end of the socket is closed."""


class Worker:
    """Computes what comes over a socket, until that is closed.

    Args:
        link: one end of a pair.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._frames = Frames()
        self._jobs: dict[int, Job] = {}
        self._told_at = 0.0

    def run(self) -> None:
        """Load the model that is asked for first, and compute. Raises `Gone` at the end."""
        from agents.policy.decoder import Decoder

        (settings,) = self._receive(wait=True)
        assert isinstance(settings, TransformersSettings)
        try:
            decoder = Decoder(LocalModel(settings))
        except PolicyError as error:
            self._send(Broken(error))
            return
        except Exception as error:
            self._note()
            self._send(Broken(EngineFailed(f"the transformers engine did not start: {one_line(error)}")))
            return
        tokenizer = decoder.model.tokenizer.inner.backend_tokenizer.to_str()
        self._send(Loaded(decoder.model.name, decoder.model.context_tokens, tokenizer), self._told(decoder))
        self.serve(decoder)

    def serve(self, decoder: "Decoder") -> None:
        """Compute; whatever is raised is told, and is the end. Raises `Gone` where nobody is there to be told."""
        try:
            while True:
                self._take_in(decoder)
                if decoder.idle:
                    continue
                ended = [(job.ticket, answer) for job, answer in decoder.step()]
                for number, _ in ended:
                    self._jobs.pop(number, None)
                if ended or decoder.idle or time.monotonic() - self._told_at > TELL_S:
                    self._send(self._told(decoder, ended))
        except Gone:
            raise
        except Exception as error:
            self._note()
            self._send(Broken(EngineFailed(f"the transformers engine failed: {one_line(error)}")))

    def _take_in(self, decoder: "Decoder") -> None:
        """Do what came meanwhile; wait for it where there is nothing else to do."""
        from agents.policy.decoder import Job

        for message in self._receive(wait=decoder.idle):
            match message:
                case Given(number, request, queued_at):
                    job = self._jobs[number] = Job(request, number, queued_at=queued_at)
                    decoder.add(job)
                case Withdrawn(numbers):
                    for number in numbers:
                        if number in self._jobs:
                            self._jobs.pop(number).cancelled = True
                case Publish(number, version, path):
                    self._send(self._told(decoder, [(number, self._publish(decoder, version, path))]))

    def _publish(self, decoder: "Decoder", version: str, path: str) -> PolicyError | None:
        try:
            decoder.model.publish(version, path)
        except PolicyError as error:
            return error
        except Exception as error:
            self._note()
            return BadModel(f"transformers cannot load it: {one_line(error)}")
        return None

    def _told(
        self, decoder: "Decoder", answers: Sequence[tuple[int, Completion | PolicyError | None]] = ()
    ) -> Told:
        self._told_at = time.monotonic()
        gauges = {"cached_blocks": float(decoder.cache.blocks), "waiting": float(decoder.waiting)}
        return Told(answers, {**decoder.counts, **gauges})

    def _note(self) -> None:
        self._send(Note(traceback.format_exc()))

    def _receive(self, *, wait: bool) -> list[Any]:
        """Return what has come; with `wait`, once there is something."""
        found: list[Any] = []
        while True:
            waiting = wait and not found
            try:
                data = self._link.recv(_READ_BYTES, 0 if waiting else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            except ConnectionError:
                raise Gone from None
            if not data:
                raise Gone
            found += self._frames.feed(data)

    def _send(self, *messages: Any) -> None:
        try:
            self._link.sendall(framed(messages))
        except OSError:
            raise Gone from None


def main() -> None:
    """Run on the socket whose number is the first argument."""
    with socket.socket(fileno=int(sys.argv[1])) as link:
        try:
            Worker(link).run()
        except Gone:
            pass
    # Nothing is left that is worth the time that libraries take to leave.
    sys.stderr.flush()
    os._exit(0)
