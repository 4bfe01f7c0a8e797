import asyncio
from pathlib import Path

from arena.desk import Desk
from arena.errors import StoreError
from arena.hosted import note_failure, noted_failure
from arena.owed import Owed
from arena.report import MatchReport
from arena.store import Store


def report(name: str, *, error: str | None = None, record: Path | None = None) -> MatchReport:
    return MatchReport(name, "kuhn", 0, error, record=record)


def test_a_refused_result_stays_owed_and_is_stored_with_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk(tmp_path)
        owed, refusing, stored = Owed(desk), [True], list[str]()

        def store_it(name: str) -> None:
            if refusing[0]:
                raise StoreError("the disk is full")
            stored.append(name)

        await owed.add(report("a"), lambda store: store_it("a"))
        await owed.add(report("b"), lambda store: store_it("b"))
        assert stored == []
        refusing[0] = False
        await owed.add(report("c"), lambda store: store_it("c"))
        await owed.settle()
        assert stored == ["a", "b", "c"]
        await desk.close()

    asyncio.run(main())


def test_all_or_none_are_stored_and_a_failure_is_forgotten_only_then(tmp_path: Path) -> None:
    record = tmp_path / "x.arena"
    note_failure(record, "it failed")

    async def main() -> None:
        desk = Desk(tmp_path)
        owed, refusing = Owed(desk), [True]

        def add(store: Store) -> None:
            store.add_tournament({}, config_hash="one")

        def refuse(store: Store) -> None:
            if refusing[0]:
                raise StoreError("the disk is full")

        owed._owed.append((report("a", error="it failed", record=record), add))
        await owed.add(report("b"), refuse)
        assert await desk.run(lambda store: store.tournaments()) == []
        assert noted_failure(record) == "it failed"
        refusing[0] = False
        await owed.settle()
        assert [row.hash for row in await desk.run(lambda store: store.tournaments())] == ["one"]
        assert noted_failure(record) is None
        await desk.close()

    asyncio.run(main())
