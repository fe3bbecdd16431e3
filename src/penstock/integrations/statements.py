"""What is written over a caller's connection, told apart from how: a script that yields statements.

Whoever runs the script hands each statement to a driver, blocking or not, and sends the rows back.
"""

from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.ordering import Mode
from penstock.errors import InvalidJob, KeyConflict
from penstock.integrations.refusals import KeyTaken, refusal

Dialect = Literal["postgresql", "sqlite"]
Rows = Sequence[Sequence[Any]]
ROWS: Final = 500  # of an INSERT: the drivers' limits on parameters begin at 32,767
_COLUMNS: Final = tuple("message_group" if name == "group" else name for name in NewJob._fields)
_OWNERS: Final = """
    SELECT l.name, k.key, k.id, c.payload FROM penstock_keys k JOIN penstock_lanes l ON l.id = k.lane
      LEFT JOIN penstock_contexts c ON c.id = k.id WHERE k.key IN ({})"""


class Statement(NamedTuple):
    """SQL with `?` where its values go; `rows` = it returns some."""

    sql: str
    values: tuple[Any, ...]
    rows: bool = True


Script = Generator[Statement, Rows, list[Enqueued]]
Ids = Generator[Statement, Rows, list[str]]


def written(dialect: Dialect, jobs: Sequence[NewJob]) -> Script:
    """Write the jobs, which have ids, and return what became of each; raise what the database refused."""
    ids: list[str] = []
    for start in range(0, len(jobs), ROWS):
        part = jobs[start : start + ROWS]
        ids += yield from _on_postgres(part) if dialect == "postgresql" else _on_sqlite(part)
    return [Enqueued(id_, duplicate=id_ != job.id) for id_, job in zip(ids, jobs, strict=True)]


def _on_postgres(jobs: Sequence[NewJob]) -> Ids:
    try:
        rows = yield _insert("penstock.enqueue", jobs, _plain, " RETURNING id")
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        raise refused from error
    return [row[0] for row in rows]


def _on_sqlite(jobs: Sequence[NewJob]) -> Ids:
    """A view cannot return what its trigger found: whose the keys are is asked afterwards."""
    keys = sorted({job.key for job in jobs if job.key is not None})
    owners = Statement(_OWNERS.format(", ".join("?" * len(keys))), tuple(keys))
    try:
        yield _insert("penstock_enqueue", jobs, _for_sqlite)
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        if isinstance(refused, KeyTaken):
            refused = _conflict(jobs, (yield owners)) or InvalidJob("key", refused.problem)
        raise refused from error
    if not keys:
        return [str(job.id) for job in jobs]
    found = {(lane, key): id_ for lane, key, id_, _ in (yield owners)}
    return [str(found.get((job.lane, job.key), job.id)) for job in jobs]


def _conflict(jobs: Sequence[NewJob], owners: Rows) -> KeyConflict | None:
    """Return which key belongs to a job with another payload: one that is there, or one that came before."""
    found = {(lane, key): (id_, payload) for lane, key, id_, payload in owners}
    for job in jobs:
        if job.key is not None:
            id_, payload = found.setdefault((job.lane, job.key), (job.id, job.payload))
            if payload != job.payload:
                return KeyConflict(job.key, str(id_))
    return None


def _insert(
    view: str, jobs: Sequence[NewJob], value: Callable[[object], object], tail: str = ""
) -> Statement:
    """Insert the rows with the columns that any of them uses; NULL is the lane's default."""
    used = [
        index for index, values in enumerate(zip(*jobs, strict=True)) if any(v is not None for v in values)
    ]
    sql = _insert_sql(view, tuple(_COLUMNS[index] for index in used), len(jobs)) + tail
    return Statement(sql, tuple(value(job[index]) for job in jobs for index in used), rows=bool(tail))


@lru_cache(maxsize=256)
def _insert_sql(view: str, columns: Sequence[str], rows: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {view} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"


def _plain(value: object) -> object:
    return value.label if isinstance(value, Mode) else value


def _for_sqlite(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else _plain(value)
