"""Jobs written over the caller's own connection: they appear when its transaction commits, or never.

One INSERT into the view that any program may use (`penstock.enqueue`), whatever the driver. Nothing is
committed, rolled back or begun here beyond what the driver does by itself. Drivers are recognised by the
connection that is given; none is imported.
"""

from collections.abc import Sequence

from penstock.domain.job import Enqueued, NewJob
from penstock.errors import PenstockError
from penstock.integrations.drivers import AsyncLine, Line, asynchronous, synchronous
from penstock.integrations.home import Home
from penstock.integrations.statements import Script, written

Answers = list[Enqueued | PenstockError]


def enqueue(connection: object, jobs: Sequence[NewJob], *, home: Home | None = None) -> Answers:
    """Write jobs that are checked and have ids, over a connection that blocks.

    `home` is the database they were checked against: another one has other lanes.
    """
    line = synchronous(connection)
    script = _script(line, jobs, home)
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


async def enqueue_async(connection: object, jobs: Sequence[NewJob], *, home: Home | None = None) -> Answers:
    """Write jobs that are checked and have ids, over a connection for asyncio code; see `enqueue`."""
    line = await asynchronous(connection)
    script = _script(line, jobs, home)
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


def _script(line: Line | AsyncLine, jobs: Sequence[NewJob], home: Home | None) -> Script:
    """See that the connection leads to the right database, then write."""
    question = home.question(line.dialect, line.address) if home else None
    if home and question:
        home.check((yield question), line.address)
    return (yield from written(line.dialect, jobs))
