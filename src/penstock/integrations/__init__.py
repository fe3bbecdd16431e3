"""Jobs written over the caller's own connection: they appear when its transaction commits, or never.

One INSERT into the view that any program may use (`penstock.enqueue`), whatever the driver. Nothing is
committed, rolled back or begun here beyond what the driver does by itself. Drivers are recognised by the
connection that is given; none is imported.
"""

from collections.abc import Sequence

from penstock.domain.job import Enqueued, NewJob
from penstock.errors import InvalidJob, PenstockError
from penstock.integrations.drivers import asynchronous, synchronous
from penstock.integrations.statements import Dialect, written

Answers = list[Enqueued | PenstockError]


def enqueue(connection: object, jobs: Sequence[NewJob], *, dialect: Dialect | None = None) -> Answers:
    """Write jobs that are checked and have ids, over a connection that blocks.

    `dialect` is that of the store they were checked against: another database has other lanes.
    """
    line = synchronous(connection)
    _check(line.dialect, dialect)
    script = written(line.dialect, jobs)
    try:
        statement = next(script)
        while True:
            try:
                rows = line.run(statement)
            except Exception as error:  # noqa: BLE001 - every driver has its own; the script knows what to do
                statement = script.throw(error)
            else:
                statement = script.send(rows)
    except StopIteration as end:
        return list(end.value)


async def enqueue_async(
    connection: object, jobs: Sequence[NewJob], *, dialect: Dialect | None = None
) -> Answers:
    """Write jobs that are checked and have ids, over a connection for asyncio code; see `enqueue`."""
    line = await asynchronous(connection)
    _check(line.dialect, dialect)
    script = written(line.dialect, jobs)
    try:
        statement = next(script)
        while True:
            try:
                rows = await line.run(statement)
            except Exception as error:  # noqa: BLE001 - every driver has its own; the script knows what to do
                statement = script.throw(error)
            else:
                statement = script.send(rows)
    except StopIteration as end:
        return list(end.value)


def _check(connected: Dialect, expected: Dialect | None) -> None:
    if expected not in (None, connected):
        raise InvalidJob(
            "connection",
            f"leads to {connected}, but this client is on {expected}: give one to the same database",
        )
