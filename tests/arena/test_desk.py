import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.desk import Desk, Together
from arena.errors import StoreError
from arena.store import Store
from games.errors import ArenaError


def test_work_is_done_in_the_order_in_which_it_was_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        desk, done = Desk(tmp_path), list[int]()
        await asyncio.gather(*(desk.run(lambda store, n=n: done.append(n)) for n in range(20)))  # type: ignore[misc]
        assert done == list(range(20)) and desk.waiting == 0
        await desk.close()

    asyncio.run(main())


def test_what_is_asked_for_meanwhile_is_done_in_one_go(tmp_path: Path) -> None:
    async def main() -> None:
        desk, gate = Desk(tmp_path), threading.Event()
        calls: list[list[int]] = []

        def double(store: Store, asked: Sequence[int]) -> list[int | ArenaError]:
            gate.wait()
            calls.append(list(asked))
            return [StoreError("an odd one") if n % 2 else 2 * n for n in asked]

        together = Together(desk, double)
        first = asyncio.ensure_future(together.run(0))
        while not desk.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0)
        others = [asyncio.ensure_future(together.run(n)) for n in (1, 2, 3, 4)]
        await asyncio.sleep(0)
        others[1].cancel()
        gate.set()
        found = await asyncio.gather(first, *others, return_exceptions=True)
        assert calls == [[0], [1, 2, 3, 4]]
        assert found[0] == 0 and found[4] == 8
        assert isinstance(found[1], StoreError) and isinstance(found[3], StoreError)
        assert isinstance(found[2], asyncio.CancelledError)
        assert await together.run(5 + 1) == 12
        await desk.close()

    asyncio.run(main())


def test_what_fails_as_a_whole_fails_for_each(tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk(tmp_path)

        def refuse(store: Store, asked: Sequence[str]) -> list[str | ArenaError]:
            raise StoreError("the disk is full")

        together = Together(desk, refuse)
        found = await asyncio.gather(*map(together.run, "abc"), return_exceptions=True)
        assert all(isinstance(one, StoreError) for one in found)
        await desk.close()

    asyncio.run(main())


def test_closing_waits_for_what_was_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk(tmp_path)
        done: list[int] = []

        def note(store: Store, asked: Sequence[int]) -> list[ArenaError | None]:
            done.extend(asked)
            return [None for _ in asked]

        together = Together(desk, note)
        asked = asyncio.ensure_future(together.run(1))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await desk.close()
        assert done == [1]

    asyncio.run(main())
