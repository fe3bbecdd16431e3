"""Jobs by plain INSERT: what a row may hold, what is refused, what becomes of it."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.job import NewJob
from penstock.domain.ordering import Mode
from penstock.domain.states import JobState
from penstock.domain.ulid import is_valid, timestamp_ms
from penstock.ports.clock import SystemClock
from penstock.ports.store import Ask
from tests.stores.sql_enqueue.door import Door

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"
MINE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TIME = "2026-11-15T10:00:00Z"
EXAMPLES = settings(max_examples=20)

LABELS = [
    (name, value) for name in ("message_group", "key", "tenant") for value in ("", "x" * 256, "ü" * 128)
]
TEXTS = [
    (name, value) for name in ("target", "entity", "version", "correlation") for value in ("", "x" * 2049)
]
OBJECTS = [(name, value) for name in ("headers", "event") for value in ("", "{", "[]", "1", '"x"', "null")]
REFUSED: list[tuple[str, object]] = [
    *LABELS,
    *TEXTS,
    *OBJECTS,
    *[("payload", value) for value in ("", "{", "x", "NaN", "{'a': 1}", "1 2", '"\n"', "[" * 100_000)],
    *[("sequence", value) for value in (-1, 2_147_483_648, 9_000_000_000_000_000_000)],
    *[("mode", value) for value in ("", "IMMEDIATE", "later")],
    *[("max_attempts", value) for value in (-1, 0, 1001)],
    *[
        ("id", value)
        for value in ("", "x", MINE.lower(), MINE[:-1], MINE + "0", "8" + MINE[1:], MINE[:-1] + "U")
    ],
    *[
        ("headers", value)
        for value in ('{"a": 1}', '{"a b": "x"}', '{"": "x"}', '{"a:": "x"}', r'{"a": "x\ny"}')
    ],
    ("headers", r'{"a": "\u0000"}'),
    ("headers", json.dumps({"a": "x" * 17_000})),
    ("event", '{"id": "1", "kind": "x"}'),
    *[(name, "1969-12-31T23:59:59Z") for name in ("run_at", "start_by", "finish_by")],
    ("run_at", "9999-01-01T00:00:00Z"),
]
EVERYTHING: dict[str, Any] = {
    "payload": '{"b": 1,  "a":[1.0, 1e2],"b":2, "s":"ß\\u0000 \u2028 🚰"}\n',
    "message_group": "g" * 255,
    "sequence": 7,
    "mode": "next_on_error",
    "run_at": "2026-11-15T10:00:00.123456+02:00",
    "start_by": "2026-11-15T10:00:00.123456+02:00",
    "finish_by": "2027-01-01T00:00:00Z",
    "key": "k",
    "tenant": "acme",
    "target": "https://example.org/hook?x=1&y=2",
    "headers": '{"X-Trace" : "ü"}',
    "max_attempts": 1000,
    "id": "01ARZ3NDEKTSV4RRFFQ69G5FAW",
    "entity": "order/17",
    "version": "3",
    "event": '{"id": "e1", "type":"order.paid", "at": 5}',
    "correlation": "c-9",
}


def view_columns(door: Door) -> list[str]:
    if door.is_postgres:
        rows = door.sql(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'penstock' AND table_name = 'enqueue' ORDER BY ordinal_position"
        )
    else:
        rows = door.sql("SELECT name FROM pragma_table_info('penstock_enqueue')")
    return [row[0] for row in rows]


def test_the_columns_are_the_enqueue_objects_fields(door: Door) -> None:
    names = ["message_group" if name == "group" else name for name in NewJob._fields]

    assert view_columns(door) == names


def test_the_reference_describes_every_column_and_no_other(door: Door) -> None:
    page = PAGE.read_text(encoding="utf-8")
    documented = re.findall(
        r"^\| `(\w+)` \|", page.partition("## Columns")[2].partition("\n## ")[0], re.MULTILINE
    )

    assert documented == view_columns(door)
    assert "Contract version 1" in page


def test_a_lane_is_enough(door: Door) -> None:
    lane = door.lane(mode="next_on_error", retention="30d")
    before = door.store.now() - timedelta(seconds=1)

    door.insert(lane=lane)

    [job_id] = door.ids(lane)
    job = door.store.find([job_id])[job_id]
    assert (job.lane, job.state, job.mode, job.live.keep) == (lane, JobState.PENDING, Mode.NEXT_ON_ERROR, 30)
    assert job.context is not None
    assert (job.context.payload, job.context.sequence, job.live.grp) == (None, 99, "default")
    assert before < job.context.run_at <= door.store.now() + timedelta(seconds=1)
    assert job.context.created_at == job.context.run_at


def test_nothing_given_is_the_same_as_left_out(door: Door) -> None:
    lane = door.lane()

    door.insert(lane=lane, **dict.fromkeys(name for name in view_columns(door) if name != "lane"))

    assert door.contexts(lane, "mode", "sequence", "payload", "key") == [(0, 99, None, None)]


def test_everything_said_is_kept_to_the_letter(door: Door) -> None:
    lane = door.lane()
    if not door.sql("SELECT 1 FROM penstock.pools WHERE name = 'web'"):
        door.sql("INSERT INTO penstock.pools (name) VALUES ('web')")

    door.insert(lane=lane, pool="web", **EVERYTHING)

    job = door.store.find([EVERYTHING["id"]])[EVERYTHING["id"]]
    assert job.context is not None
    said = dict(EVERYTHING, pool="web", mode=Mode.NEXT_ON_ERROR)
    for name in ("run_at", "start_by", "finish_by"):
        said[name] = datetime.fromisoformat(EVERYTHING[name])
    kept = job.context._asdict() | {
        "mode": job.mode, "tenant": job.live.tenant, "start_by": job.live.start_by,
        "max_attempts": job.live.max_attempts,
    }  # fmt: skip
    assert {name: kept[name] for name in said} == said
    assert job.live.grp == EVERYTHING["message_group"]


@pytest.mark.parametrize(("field", "value"), REFUSED, ids=lambda value: ascii(value)[:30])
def test_what_penstock_cannot_use_is_refused_by_name(door: Door, field: str, value: object) -> None:
    assert door.refusal(lane=door.empty, **{field: value}).startswith(f"penstock: {field}: ")
    assert door.ids(door.empty) == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"sequence": -1}, "from 0 to 2147483647"),
        ({"mode": "x"}, "immediate, next_on_error, block_on_error"),
        ({"max_attempts": 0}, "from 1 to 1000"),
        ({"key": ""}, "1 to 255"),
        ({"payload": "x"}, 'write text as "text"'),
        ({"id": "x"}, MINE),
        ({"headers": "[]"}, '{"X-Trace": "abc"}'),
        ({"event": "[]"}, "id, type, at and subscription"),
        ({"run_at": TIME, "start_by": "2026-11-15T09:59:59Z"}, "start_by: it is before run_at"),
        ({"run_at": TIME, "finish_by": "2026-11-15T09:59:59Z"}, "finish_by: it is before run_at"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_a_refusal_says_what_to_write(door: Door, columns: dict[str, object], words: str) -> None:
    assert words in door.refusal(lane=door.empty, **columns)


def test_a_lane_must_exist(door: Door) -> None:
    named = ' "no-such"' if door.is_postgres else "; see SELECT name FROM penstock_lanes"

    assert door.refusal(lane="no-such") == f"penstock: unknown lane{named}"
    assert door.refusal(payload="1") == "penstock: lane: write the name of a lane"


def test_a_pool_must_exist(door: Door) -> None:
    named = ' "no-such"' if door.is_postgres else "; see SELECT name FROM penstock_pools"

    assert door.refusal(lane=door.empty, pool="no-such") == f"penstock: unknown pool{named}"


def test_a_deadline_that_has_passed_is_no_mistake(door: Door) -> None:
    lane = door.lane()

    door.insert(lane=lane, start_by="2020-01-01T00:00:00Z", finish_by="2020-01-01T00:00:00Z")

    assert len(door.ids(lane)) == 1


@pytest.mark.parametrize(("size", "most"), [("7B", 7), ("1KiB", 1024), ("1MiB", 1 << 20)])
def test_a_payload_is_no_longer_than_the_lane_allows(door: Door, size: str, most: int) -> None:
    lane = door.lane(max_payload=size)
    fits = '"' + "x" * (most - 4) + 'ü"'

    door.insert(lane=lane, payload=fits)

    assert door.refusal(lane=lane, payload=f"{fits} ").startswith("penstock: payload: ")
    assert door.deliver(lane) == [fits]


def test_an_id_names_one_job_for_ever(door: Door) -> None:
    lane = door.lane()
    door.insert(lane=lane, id=MINE)

    assert door.refusal(lane=lane, id=MINE).startswith("penstock: id: there is a job ")
    door.deliver(lane)
    assert door.refusal(lane=lane, id=MINE).startswith("penstock: id: there is a job ")


def test_made_ids_are_ulids_of_the_present(door: Door) -> None:
    lane = door.lane()
    door.insert_rows(["lane"], [[lane]] * 500)
    now = SystemClock().now().timestamp() * 1000

    made = door.ids(lane)
    assert len(set(made)) == 500
    assert all(map(is_valid, made))
    assert all(abs(timestamp_ms(id_) - now) < 60_000 for id_ in made)
    assert len({letter for id_ in made for letter in id_[10:]}) == 32


def test_an_id_can_be_asked_for_first(door: Door) -> None:
    lane = door.lane()
    ask = "SELECT penstock.new_id()" if door.is_postgres else "SELECT id FROM penstock_new_id"
    [[mine]] = door.sql(ask)

    door.insert(lane=lane, id=mine)

    assert door.ids(lane) == [mine]


def test_order_is_that_of_the_rows(door: Door) -> None:
    lane = door.lane()
    rows = [(lane, str(n), "g", "block_on_error", sequence) for n, sequence in enumerate([5, 1, 5, None, 1])]

    door.insert_rows(["lane", "payload", "message_group", "mode", "sequence"], rows)

    assert door.deliver(lane) == ["1", "4", "0", "2", "3"]


def test_one_bad_row_fails_the_statement(door: Door) -> None:
    lane = door.lane()
    rows = [(lane, "1", "a"), (lane, "oops", "b"), (lane, "3", "c")]

    with pytest.raises(door.sql.refusal, match="penstock: payload: it is not JSON"):
        door.insert_rows(["lane", "payload", "key"], rows)

    assert door.contexts(lane, "id") == []
    assert door.store.claim(Ask(lane=lane, node=1)) is None
    door.insert(lane=lane, key="a", payload='"other"')


def test_a_job_appears_with_its_transaction_or_never(door: Door) -> None:
    lane, other = door.lane(), door.place.open_plain()
    other("BEGIN")
    other("INSERT INTO penstock.enqueue (lane, payload) VALUES (%s, '1')", lane)
    assert door.contexts(lane, "payload") == []
    other("ROLLBACK")
    assert door.contexts(lane, "payload") == []

    other("BEGIN")
    other("INSERT INTO penstock.enqueue (lane, payload) VALUES (%s, '2')", lane)
    other("COMMIT")
    other.close()

    assert door.deliver(lane) == ["2"]


def test_the_view_shows_nothing(door: Door) -> None:
    door.insert(lane=door.lane())

    assert door.sql("SELECT * FROM penstock.enqueue") == []


def test_counters_count(door: Door) -> None:
    lane = door.lane()
    door.insert_rows(["lane"], [[lane]] * 3)

    assert door.store.counts()[lane, JobState.PENDING] == 3


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
SPACE = st.text(" \t\r\n", max_size=3)
PAYLOADS = st.builds(
    lambda value, ascii_, indent, before, after: (
        before + json.dumps(value, ensure_ascii=ascii_, indent=indent) + after
    ),
    VALUES,
    st.booleans(),
    st.none() | st.integers(0, 3),
    SPACE,
    SPACE,
)


@EXAMPLES
@given(payloads=st.lists(PAYLOADS, min_size=1, max_size=20))
def test_what_is_stored_is_what_is_delivered(door: Door, payloads: list[str]) -> None:
    lane = door.lane()
    door.insert_rows(["lane", "payload"], [(lane, payload) for payload in payloads])

    assert [row[0] for row in door.contexts(lane, "payload")] == payloads
    assert sorted(door.deliver(lane), key=str) == sorted(payloads)


def test_errors_can_be_told_apart_by_a_program(pg: Door) -> None:
    lane = pg.lane()
    pg.insert(lane=lane, id="01ARZ3NDEKTSV4RRFFQ69G5FAX", key="k", payload="1")

    def code(**columns: object) -> tuple[str | None, str | None]:
        with pytest.raises(psycopg.errors.IntegrityError) as caught:
            pg.insert(**columns)
        diag = caught.value.diag
        assert (diag.schema_name, diag.table_name) == ("penstock", "enqueue")
        return diag.sqlstate, diag.column_name

    assert code(payload="1") == ("23502", "lane")
    assert code(lane="no-such") == ("23503", "lane")
    assert code(lane=lane, pool="no-such") == ("23503", "pool")
    assert code(lane=lane, sequence=-1) == ("23514", "sequence")
    assert code(lane=lane, id="01ARZ3NDEKTSV4RRFFQ69G5FAX") == ("23505", "id")
    assert code(lane=lane, key="k", payload="2") == ("23505", "key")


def test_returning_gives_what_the_job_was_given(pg: Door) -> None:
    lane = pg.lane(mode="block_on_error")

    [[job_id, mode, sequence, run_at, tenant]] = pg.sql(
        "INSERT INTO penstock.enqueue (lane) VALUES (%s) RETURNING id, mode, sequence, run_at, tenant", lane
    )

    assert [job_id] == pg.ids(lane)
    assert (mode, sequence, tenant) == ("block_on_error", 99, None)
    assert [(run_at,)] == pg.contexts(lane, "run_at")


def test_json_made_by_the_database_is_a_payload(pg: Door) -> None:
    lane = pg.lane()

    pg.sql("INSERT INTO penstock.enqueue (lane, payload) SELECT %s, jsonb_build_object('n', 1)", lane)

    assert pg.deliver(lane) == ['{"n": 1}']


@pytest.mark.parametrize("time", ["infinity", "-infinity", "0001-01-01T00:00:00Z", "20000-01-01T00:00:00Z"])
def test_a_time_no_clock_shows_is_refused(pg: Door, time: str) -> None:
    for field in ("run_at", "start_by", "finish_by"):
        assert (
            pg.refusal(lane=pg.empty, **{field: time}) == f"penstock: {field}: write a time from 1970 to 9998"
        )
