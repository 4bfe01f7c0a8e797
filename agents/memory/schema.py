"""The store's tables, as named migrations.

A row of `totals` sums up the episodes of one generation, actor, purpose and skill, apart for those that were
advised, and is kept in the transaction that stores them: a profile reads these few rows, however many episodes there
are. The narrow `tasks` are apart from the wide `task_data` so that choosing among many tasks reads little.
"""

from sqlite_utils import Database, Migrations

from games.tasks.spec import DIMENSIONS

migrations = Migrations("evoke-memory")

_SUMS = {
    "episodes": int,
    "successes": int,
    "first_tries": int,
    "first_successes": int,
    "steps": int,
    "measured": int,
}
SUM_COLUMNS = (*_SUMS, *DIMENSIONS)
"""What `totals` sums up; `measured` counts the episodes whose task has a difficulty."""


@migrations()
def m001_memory(db: Database) -> None:
    """The first schema."""
    db.table("versions").create(
        {"id": int, "kind": str, "name": str, "parent": str, "detail": str},
        pk="id",
        not_null={"kind", "name", "detail"},
    )
    db.table("versions").create_index(["kind", "name"], unique=True)
    db.table("notes").create({"key": str, "value": str}, pk="key", not_null={"value"})
    _tasks(db)
    _episodes(db)
    _lessons(db)


def _tasks(db: Database) -> None:
    db.table("tasks").create(
        {
            "id": int,
            "hash": str,
            "skill": str,
            "status": str,
            "strategy": str,
            "generation": int,
            "time": float,
            "generator": int,
            "parent": str,
            "world": str,
            "text": str,
            **dict.fromkeys(DIMENSIONS, float),
            "episodes": int,
            "successes": int,
            "progress": float,
            "last_generation": int,
            "last_episode": int,
        },
        pk="id",
        not_null={"hash", "skill", "status", "strategy", "generation", "time", "generator", "world", "text"},
        defaults={"episodes": 0, "successes": 0, "progress": 0.0},
        foreign_keys=[("generator", "versions", "id")],
    )
    db.table("tasks").create_index(["hash"], unique=True)
    db.table("tasks").create_index(["skill"])
    db.table("task_data").create(
        {"task": int, "spec": str, "initial": str, "vector": bytes},
        pk="task",
        not_null={"spec", "initial", "vector"},
        foreign_keys=[("task", "tasks", "id")],
    )
    db.execute(
        "create table task_totals (actor integer not null references versions(id), task integer not null references "
        "tasks(id), episodes integer not null, successes integer not null, progress real not null, "
        "last_generation integer not null, last_episode integer not null, primary key (actor, task)) without rowid"
    )
    _full_text(db, "tasks", ("text",))


def _episodes(db: Database) -> None:
    db.table("episodes").create(
        {
            "number": int,
            "id": str,
            "task": int,
            "actor": int,
            "purpose": str,
            "skill": str,
            "generation": int,
            "success": int,
            "first": int,
            "advised": int,
            "steps": int,
            "progress": float,
            "time": float,
            "policy": int,
            "judge": int,
            "verdict": str,
            "feedback": str,
            "actions": bytes,
            "states": bytes,
            "evidence": bytes,
            "lessons": str,
        },
        pk="number",
        not_null={
            "id",
            "task",
            "actor",
            "purpose",
            "skill",
            "generation",
            "success",
            "first",
            "verdict",
            "actions",
        },
        foreign_keys=[("task", "tasks", "id"), ("actor", "versions", "id")],
    )
    db.table("episodes").create_index(["id"], unique=True)
    db.table("episodes").create_index(["task"])
    db.table("episodes").create_index(["generation"])
    # With the rest the profile of the last episodes need not read the rows themselves.
    stream = ["actor", "purpose", "skill", "number"]
    db.table("episodes").create_index([*stream, "generation", "task", "success", "first", "steps"])
    columns = ", ".join(
        f"{name} {'real' if name in DIMENSIONS else 'integer'} not null" for name in SUM_COLUMNS
    )
    db.execute(
        f"create table totals (skill text not null, actor integer not null, purpose text not null, "
        f"generation integer not null, advised integer not null, {columns}, "
        "primary key (skill, actor, purpose, generation, advised)) without rowid"
    )


def _lessons(db: Database) -> None:
    db.table("lessons").create(
        {
            "number": int,
            "id": str,
            "text": str,
            "when_to_use": str,
            "skill": str,
            "kind": str,
            "sources": str,
            "generation": int,
            "time": float,
            "status": str,
            "merged_into": str,
            "offered": int,
            "succeeded": int,
            "expected": float,
            "variance": float,
            "last_used": int,
        },
        pk="number",
        not_null={"id", "text", "when_to_use", "skill", "kind", "sources", "generation", "time", "status"},
        defaults={"offered": 0, "succeeded": 0, "expected": 0.0, "variance": 0.0, "last_used": 0},
    )
    db.table("lessons").create_index(["id"], unique=True)
    db.table("lessons").create_index(["status"])
    db.execute(
        "create table lesson_vectors (lesson integer not null references lessons(number), embedder text not null, "
        "vector blob not null, primary key (lesson, embedder)) without rowid"
    )
    _full_text(db, "lessons", ("text", "when_to_use"))


def _full_text(db: Database, table: str, columns: tuple[str, ...]) -> None:
    # sqlite-utils' own would commit in the middle of the migration's transaction.
    key = "id" if table == "tasks" else "number"
    names = ", ".join(columns)
    new, old = (", ".join(f"{row}.{name}" for name in columns) for row in ("new", "old"))
    db.execute(
        f"create virtual table {table}_fts using fts5({names}, content='{table}', content_rowid='{key}', "
        "tokenize='porter unicode61')"
    )
    add = f"insert into {table}_fts(rowid, {names}) values (new.{key}, {new});"
    drop = f"insert into {table}_fts({table}_fts, rowid, {names}) values ('delete', old.{key}, {old});"
    db.execute(f"create trigger {table}_ai after insert on {table} begin {add} end")
    db.execute(f"create trigger {table}_ad after delete on {table} begin {drop} end")
    db.execute(f"create trigger {table}_au after update of {names} on {table} begin {drop} {add} end")
