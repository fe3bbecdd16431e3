"""What only PostgreSQL has: users with few rights, hostile settings, COPY, callers side by side."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from penstock.domain.ordering import Mode
from penstock.ports.store import Ask
from penstock.stores.postgres.store import PostgresStore
from tests.stores.places import Plain
from tests.stores.sql_enqueue.door import Door

ROWS = 5_000


@contextmanager
def user(pg: Door, *grants: str) -> Iterator[Plain]:
    """Give the connection of a user who may do nothing but what is granted."""
    # A role belongs to the server, which other tests share.
    pg.sql("CREATE ROLE enqueuer LOGIN")
    try:
        for grant in grants:
            pg.sql(f"GRANT {grant} TO enqueuer")
        with closing(
            psycopg.connect(pg.place.url.replace("postgres@", "enqueuer@"), autocommit=True)
        ) as opened:
            yield Plain(opened, "penstock.", "%s", psycopg.errors.IntegrityError)
    finally:
        pg.sql("DROP OWNED BY enqueuer CASCADE")
        pg.sql("DROP ROLE enqueuer")


SCHEMA = "USAGE ON SCHEMA penstock"
INSERT = "INSERT ON penstock.enqueue"
ENQUEUE = """
    INSERT INTO penstock.enqueue (lane, payload, message_group, mode, key)
    VALUES (%s, '1', 'g', 'block_on_error', 'k')"""


def test_the_right_to_insert_is_enough(pg: Door) -> None:
    lane = pg.lane()
    with user(pg, SCHEMA, INSERT) as sql:
        for _ in range(2):
            sql(ENQUEUE, lane)
        with pytest.raises(sql.refusal, match='penstock: unknown lane "no-such"'):
            sql(ENQUEUE, "no-such")

    assert pg.deliver(lane) == ["1"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("order", "orders"),
        ("ordres", "orders"),
        ("ORDERS", "orders"),
        ("biling", "billing"),
        ("wbe", "web"),
        ("zzz", None),
        ("", None),
        ('o"r', None),
        ("x" * 500, None),
    ],
)
def test_a_lane_or_pool_that_nobody_made_is_answered_with_near_ones(
    pg: Door, name: str, near: str | None
) -> None:
    for known in ("orders", "billing", "web"):
        for table in ("lanes", "pools"):
            pg.sql(f"INSERT INTO penstock.{table} (name) VALUES (%s) ON CONFLICT DO NOTHING", known)
    meant = f"; did you mean {near}?" if near else ""
    with user(pg, SCHEMA, INSERT) as sql:
        for kind, row in [("lane", (name, None)), ("pool", (pg.empty, name))]:
            with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught:
                sql("INSERT INTO penstock.enqueue (lane, pool) VALUES (%s, %s)", *row)
            said = caught.value.diag
            assert said.message_primary == f'penstock: unknown {kind} "{name[:80]}"{meant}'
            assert said.column_name == kind
            assert said.message_hint == (
                f"SELECT name FROM penstock.{kind}s shows those there are,"
                f" penstock {kind}s set NAME --create makes one."
            )


def test_no_more_than_three_names_are_near(pg: Door) -> None:
    known = ["order-1", "order-2", "order-3", "orders", "web"]

    [[near]] = pg.sql("SELECT penstock.near('order', %s)", known)

    assert near == ["orders", "order-1", "order-2"]


def test_the_right_to_insert_is_no_more_than_that(pg: Door) -> None:
    lane = pg.lane()
    pg.insert(lane=lane)
    with user(pg, SCHEMA, INSERT) as sql:
        for statement in [
            "SELECT id FROM penstock.contexts",
            "SELECT * FROM penstock.enqueue",
            f"INSERT INTO penstock.enqueue (lane) VALUES ('{lane}') RETURNING id",
            "INSERT INTO penstock.contexts (keep, lane, id) VALUES (7, 1, 'x')",
            "INSERT INTO penstock.wakes (lane, grp) VALUES (1, 'g')",
            "CREATE TABLE penstock.mine (x int)",
        ]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sql(statement)
        [[may]] = sql("SELECT has_function_privilege('penstock.enqueue_row()', 'EXECUTE')")
        assert not may

    assert len(pg.ids(lane)) == 1


def test_with_select_the_id_is_returned_and_nothing_shown(pg: Door) -> None:
    lane = pg.lane()
    with user(pg, SCHEMA, INSERT, "SELECT ON penstock.enqueue") as sql:
        [[job_id]] = sql(f"{ENQUEUE} RETURNING id", lane)
        assert sql("SELECT * FROM penstock.enqueue") == []

    assert pg.ids(lane) == [job_id]


HOSTILE = """
    CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE plpgsql AS $$BEGIN RAISE 'evil'; END$$;
    CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS $$BEGIN RAISE 'evil'; END$$;
    CREATE FUNCTION evil.octet_length(text) RETURNS int LANGUAGE plpgsql AS $$BEGIN RAISE 'evil'; END$$;
    CREATE FUNCTION evil.gen_random_uuid() RETURNS uuid LANGUAGE plpgsql AS $$BEGIN RAISE 'evil'; END$$;
    CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'evil'; END$$;
    CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
    CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
    CREATE DOMAIN evil.json AS text CHECK (VALUE = 'never');
    CREATE DOMAIN pg_temp.json AS text CHECK (VALUE = 'never');
    CREATE DOMAIN pg_temp.bytea AS text CHECK (VALUE = 'never');
    CREATE DOMAIN pg_temp.timestamptz AS text CHECK (VALUE = 'never');
    CREATE DOMAIN pg_temp.date AS text CHECK (VALUE = 'never');
    CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (VALUE = 'never');
    CREATE TEMP TABLE lanes (LIKE penstock.lanes);
    CREATE TEMP TABLE contexts (LIKE penstock.contexts);
    CREATE TEMP TABLE jobs (LIKE penstock.jobs);
    CREATE TEMP TABLE keys (LIKE penstock.keys);
    CREATE TEMP TABLE added (LIKE penstock.contexts);
    SET search_path = pg_temp, evil, pg_catalog;
    SET standard_conforming_strings = off;
    SET escape_string_warning = off;
    SET datestyle = 'German, DMY';
    SET intervalstyle = 'sql_standard';
    SET timezone = 'Asia/Kolkata';
    SET bytea_output = 'escape'"""


def test_the_callers_names_and_settings_change_nothing(pg: Door) -> None:
    lane = pg.lane(mode="block_on_error")
    pg.sql("CREATE SCHEMA evil")
    select = [f"SELECT ON penstock.{table}" for table in ("lanes", "contexts", "jobs", "keys")]
    everything = (
        "INSERT INTO penstock.enqueue (lane, payload, key, headers, event, run_at, start_by, message_group)"
        """ VALUES ($$%s$$, $$"a"$$, $$k$$, $${"a": "b"}$$, $${"id": "1"}$$,"""
        " $$2026-11-15T10:00:00Z$$, $$2027-11-15T10:00:00Z$$, $$g$$)"
    )
    with user(pg, SCHEMA, INSERT, *select, "ALL ON SCHEMA evil") as sql:
        sql(HOSTILE)
        for _ in range(2):
            sql.connection.execute(everything % lane)
        assert [sql(f"SELECT count(*) FROM pg_temp.{table}") for table in ("contexts", "jobs", "keys")] == [
            [(0,)]
        ] * 3

    [job_id] = pg.ids(lane)
    job = pg.store.find([job_id])[job_id]
    assert (job.mode, job.live.grp, job.live.due_at.isoformat()) == (
        Mode.BLOCK_ON_ERROR, "g", job.live.due_at.fromisoformat("2026-11-15T10:00:00Z").isoformat()
    )  # fmt: skip
    pg.sql("DROP SCHEMA evil CASCADE")


def copy(sql: Plain, columns: str, rows: list[tuple[object, ...]]) -> None:
    with (
        sql.connection.cursor() as cursor,
        cursor.copy(f"COPY penstock.enqueue ({columns}) FROM STDIN") as stream,
    ):
        for row in rows:
            stream.write_row(row)


def test_copy_enqueues(pg: Door) -> None:
    lane = pg.lane(mode="block_on_error")
    payloads = [f'{{"n": {n}, "tab": "\\t", "text": "ü\u2028🚰"}}' for n in range(ROWS)]

    copy(
        pg.sql,
        "lane, payload, message_group",
        [(lane, text, f"g{n % 100}") for n, text in enumerate(payloads)],
    )

    assert [row[0] for row in pg.contexts(lane, "payload")] == payloads
    ask = Ask(lane=lane, node=1, limit=100, run=100)
    delivered = []
    while (claim := pg.store.claim_groups(ask)) is not None:
        delivered += [claimed.context.payload for claimed in claim.jobs if claimed.context is not None]
        pg.store.settle(claim)
    assert sorted(map(str, delivered)) == sorted(payloads)


def test_one_bad_row_fails_the_copy(pg: Door) -> None:
    lane = pg.lane()

    with pytest.raises(pg.sql.refusal, match="penstock: payload: it is not JSON"):
        copy(pg.sql, "lane, payload", [(lane, "1"), (lane, "oops"), (lane, "3")])

    assert pg.ids(lane) == []


@pytest.mark.parametrize("known", [False, True], ids=["new-group", "known-group"])
@pytest.mark.parametrize("mode", [mode.label for mode in Mode])
def test_an_open_transaction_stalls_nobody(pg: Door, mode: str, known: bool) -> None:  # noqa: FBT001
    lane, enqueue = (
        pg.lane(mode=mode),
        "INSERT INTO penstock.enqueue (lane, message_group, payload) VALUES (%s, 'g', %s)",
    )
    store = PostgresStore(f"{pg.place.url}?options=-c%20lock_timeout%3D500")
    if known:
        pg.sql(enqueue, lane, "0")
    with closing(store), closing(pg.place.open_plain()) as first, closing(pg.place.open_plain()) as second:
        for sql, payload in ((first, "1"), (second, "2")):
            sql("SET lock_timeout = 500")
            sql("BEGIN")
            sql(enqueue, lane, payload)
        pg.sql(enqueue, lane, "3")
        waiting = ["0", "3"] if known else ["3"]

        assert Door(pg.place, store, pg.sql).deliver(lane) == waiting
        second("COMMIT")
        first("COMMIT")

    assert sorted(pg.deliver(lane), key=str) == ["1", "2"]
