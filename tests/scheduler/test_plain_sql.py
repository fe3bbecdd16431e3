"""Jobs that plain SQL wrote: what SQL could not refuse does not go out."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from penstock.domain.states import JobState
from tests.scheduler.engine import Engine

DOUBTFUL = {
    "payload": ['{"pay": 1, "pay": 1000}', r'"end\u0000ed"', r'{"name": "\ud800"}', "[" * 65 + "]" * 65],
    "event": ['{"id": "1", "id": "2"}'],
    "headers": ['{"X-To": "ann", "X-To": "bob"}'],
}


def insert(engine: Engine, **columns: object) -> None:
    """Insert a row as any program would."""
    names, values = ", ".join(columns), tuple(columns.values())
    marks = ", ".join(["{}"] * len(columns))
    if engine.url.startswith("sqlite"):
        with closing(sqlite3.connect(engine.url.removeprefix("sqlite:///"))) as db, db:
            db.execute(f"INSERT INTO penstock_enqueue ({names}) VALUES ({marks.replace('{}', '?')})", values)
        return
    with psycopg.connect(engine.url, autocommit=True) as server:
        statement = f"INSERT INTO penstock.enqueue ({names}) VALUES ({marks.replace('{}', '%s')})"
        server.execute(statement.encode(), values)


def the_job(engine: Engine) -> str:
    [job] = engine.client.list(lane="orders").jobs
    return job.id


@pytest.mark.parametrize(
    ("column", "text"), [(name, text) for name, texts in DOUBTFUL.items() for text in texts]
)
async def test_json_that_readers_would_not_agree_on_ends_dead_instead_of_going_out(
    engine: Engine, column: str, text: str
) -> None:
    insert(engine, **{"lane": "orders", column: text})
    async with engine.node():
        await engine.ended(the_job(engine), state=JobState.DEAD)

    job = engine.client.get(the_job(engine))
    assert engine.sent == []
    assert job.live.reason == "permanent"
    assert str(job.error).startswith(f"{column}: ")
    assert str(job.error).endswith("edit the job, or enqueue another one")


async def test_it_goes_once_it_is_edited(engine: Engine) -> None:
    insert(engine, lane="orders", payload='{"pay": 1, "pay": 1000}')
    id_ = the_job(engine)
    async with engine.node():
        await engine.ended(id_, state=JobState.DEAD)
        engine.client.edit(id_, reason="it was 1", payload={"pay": 1}, replay=True)
        await engine.ended(id_)

    assert [call.envelope.payload for call in engine.sent] == ['{"pay":1}']


async def test_good_json_goes_out_byte_for_byte_and_a_bad_mate_hurts_nobody(engine: Engine) -> None:
    good = '{ "a": [1.0, "\\u00e9"] }'
    for payload in (good, '{"a": 1, "a": 2}', None):
        insert(engine, lane="orders", payload=payload, headers='{"X-To": "ann"}', event='{"id": "7"}')
    async with engine.node():
        await engine.until(lambda: len(engine.sent) == 2)
        await engine.until(lambda: engine.client.counts().get(("orders", JobState.DEAD)) == 1)

    assert {call.envelope.payload for call in engine.sent} == {good, None}


async def test_the_jobs_behind_a_bad_one_wait_for_it(engine: Engine) -> None:
    insert(engine, lane="orders", mode="block_on_error", message_group="a", payload='{"a": 1, "a": 2}')
    bad = the_job(engine)
    [behind] = engine.enqueue({"mode": "block_on_error", "group": "a"})
    async with engine.node():
        await engine.ended(bad, state=JobState.DEAD)
        assert engine.client.get(behind).state is JobState.PENDING
        engine.client.skip(bad, reason="a mistake")
        await engine.ended(behind)
