"""What the process of the engine on transformers says and does, here on a thread, so that faults can be put in."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadModel, EngineFailed
from agents.policy.base import Completion
from agents.policy.worker import Broken, Frames, Given, Gone, Note, Publish, Told, Withdrawn, Worker, framed
from tests.agents.policy.asked import MIXED, endless, settings

pytest.importorskip("torch")
pytest.importorskip("transformers")


@given(
    batches=st.lists(st.lists(st.one_of(st.integers(), st.text(), st.binary(max_size=300)))),
    cuts=st.lists(st.integers(min_value=1, max_value=40), min_size=1),
)
def test_messages_come_whole_whatever_the_pieces(batches: list[list[Any]], cuts: list[int]) -> None:
    sent = b"".join(map(framed, batches))
    frames, found, at, turn = Frames(), [], 0, 0
    while at < len(sent):
        size = cuts[turn % len(cuts)]
        found += frames.feed(sent[at : at + size])
        at, turn = at + size, turn + 1
    assert found == [message for batch in batches for message in batch]


class Caller:
    """The arena's end of the socket, which waits."""

    def __init__(self, link: socket.socket) -> None:
        self._link, self._frames = link, Frames()

    def say(self, *messages: Any) -> None:
        self._link.sendall(framed(messages))

    def hear(self) -> Iterator[Any]:
        """Yield what is said, until the worker's end is closed."""
        while data := self._link.recv(1 << 16):
            yield from self._frames.feed(data)

    def answers(self, numbers: set[int]) -> dict[int, Any]:
        """Return the answers of these numbers."""
        found: dict[int, Any] = {}
        for message in self.hear():
            if isinstance(message, Told):
                found.update(message.answers)
                if numbers <= set(found):
                    return found
        raise AssertionError(f"the worker ended, and answered {sorted(found)} of {sorted(numbers)}")


@contextmanager
def working(model: Path) -> Iterator[tuple[Caller, Any]]:
    """Run a worker, and close the socket in the end."""
    from agents.policy.decoder import Decoder
    from agents.policy.local_model import LocalModel

    decoder = Decoder(LocalModel(settings(model)))
    ours, theirs = socket.socketpair()

    def work() -> None:
        with theirs, suppress(Gone):
            Worker(theirs).serve(decoder)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with ours:
            yield Caller(ours), decoder
    finally:
        thread.join()


def test_it_answers_by_number_and_drops_what_is_withdrawn(model_folder: Path) -> None:
    with working(model_folder) as (caller, decoder):
        caller.say(*(Given(i, one, 0.0) for i, one in enumerate(MIXED[:4])), Given(9, endless(1), 0.0))
        found = caller.answers({0, 1, 2, 3})
        assert all(isinstance(one, Completion) and one.queue_s > 0 for one in found.values())
        caller.say(Withdrawn((9, 2, 77)), Given(10, MIXED[0], 0.0))
        again = caller.answers({10})
        assert 2 not in again and again[10].token_ids == found[0].token_ids
    assert decoder.idle and decoder.counts["requests"] == 6


def test_publishing_that_fails_in_any_way_is_told_and_it_goes_on(
    model_folder: Path, full_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working(model_folder) as (caller, decoder):

        def broken(*_: Any) -> None:
            raise RuntimeError("out of\nmemory")

        with monkeypatch.context() as patch:
            patch.setattr(decoder.model, "publish", broken)
            caller.say(Publish(1, "a@1", str(full_folder)))
            error = caller.answers({1})[1]
        assert isinstance(error, BadModel) and str(error) == "transformers cannot load it: out of memory"
        caller.say(Publish(2, "a@1", str(full_folder)), Given(3, MIXED[0], 0.0))
        assert caller.answers({2, 3})[2] is None


def test_a_failure_in_the_middle_is_told_and_is_the_end(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working(model_folder) as (caller, decoder):

        def broken(*_: Any, **__: Any) -> Any:
            raise RuntimeError("out of\nmemory")

        monkeypatch.setattr(decoder.model, "forward", broken)
        caller.say(Given(1, MIXED[0], 0.0))
        said = list(caller.hear())
    note, last = said[-2:]
    assert isinstance(note, Note) and "Traceback" in note.text
    assert isinstance(last, Broken) and isinstance(last.reason, EngineFailed)
    assert str(last.reason) == "the transformers engine failed: out of memory"


def test_it_ends_in_the_middle_of_an_answer_when_nobody_is_there(model_folder: Path) -> None:
    with working(model_folder) as (caller, decoder):
        caller.say(Given(1, endless(1), 0.0))
        assert any(isinstance(one, Told) for one in caller.hear())
    assert decoder.counts["passes"] > 0
