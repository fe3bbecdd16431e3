"""Lanes and pools changed by plain SQL: checked as by Penstock itself, versioned, audited."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import product
from threading import Barrier

import psycopg
import pytest

from penstock.domain.lanes import RETENTION_DAYS, SETTINGS, lane
from penstock.errors import InvalidSetting
from penstock.stores.sql.database import Database
from penstock.stores.sql.lanes import load_lanes, put_lane
from penstock.stores.sql.migrate import migrate
from tests.conftest import PgServer
from tests.stores.places import Place, Plain

GetPlace = Callable[[str], Place]

CURVE = '{"first":"1s","factor":2,"max":"1h","attempts":8}'
BAD_RETRIES = [
    *("", "x", "5", '"5s"', "null", "[]", "[5]", "[null]", '["0s","x"]', '["0s","366d"]', "{}"),
    json.dumps(["0s"] * 1001),
    CURVE.replace('"1s"', '"0s"'),
    CURVE.replace('"1h"', '"500ms"'),
    CURVE.replace('"1h"', '"366d"'),
    CURVE.replace('"1s"', "1"),
    CURVE.replace(":2", ":0.5"),
    CURVE.replace(":2", ":1001"),
    CURVE.replace(":2", ":true"),
    CURVE.replace(":2", ':"2"'),
    CURVE.replace(":8", ":0"),
    CURVE.replace(":8", ":1001"),
    CURVE.replace(":8", ":8.0"),
    CURVE.replace(":8", ':"8"'),
    CURVE.replace(',"attempts":8', ""),
    CURVE.replace(":8", ':8,"more":1'),
]
GOOD_CURVES = [CURVE, CURVE.replace(":2", ":2.5"), CURVE.replace('"1h"', '"1s"')]
BAD_BY_KIND: Mapping[str, Sequence[object]] = {
    "bool": [None],
    "int": [0, -1],
    "text": [""],
    "word": ["", "none of them", "DONE"],
    "duration": ["", "5", "4 sec", "-1s", "1.5s", "s", "5S", "1m30s", "5s\n", "1000000000d", "9" * 16 + "ms"],
    "size": ["", "5", "5KB", "1.5MiB", "KiB", "-1B", "9" * 16 + "B"],
    "rate": ["", "5", "5/d", "/s", "0/s", "-1/s", "5/s/s", "1000000001/s", "99999999999/s"],
    "misfire": ["", "skip", "skip_after", "skip_after()", "skip_after(10)", "skip_after(1000000000d)"],
    "retry": BAD_RETRIES,
}
GOOD_BY_KIND: Mapping[str, Sequence[object]] = {
    "bool": [True, False],
    "int": [1, 2_147_483_647],
    "text": ["x", "with 'quotes' and ü"],
    "word": [],
    "duration": ["0s", "250ms", "999999999d", "9" * 15 + "ms"],
    "size": ["0B", "512B", "256KiB", "8MiB", "1GiB"],
    "rate": ["1/s", "10/m", "1000000000/h"],
    "misfire": ["send_now", "skip_after(10m)"],
    "retry": ['["0s"]', '[ "0s", "1m" ]', '["0ms","365d"]', json.dumps(["0s"] * 1000), *GOOD_CURVES],
}
# Written well, but no lane can work with it.
SENSELESS: Mapping[str, Sequence[object]] = {
    "lease": ["0s", "999ms"],
    "poll_interval": ["0s", "19ms", "60001ms", "61s", "2m", "1h", "1d"],
    "timeout": ["0s", "0ms", "0d"],
    "retry": ['["1s"]', '["1m","0s"]', '[ "365d" ]'],
    "max_payload": ["1073741825B", "1048577KiB", "1025MiB", "2GiB", "9" * 15 + "GiB"],
}
EDGES: Mapping[str, Sequence[object]] = {
    "lease": ["1s", "1000ms", "999999999d"],
    "poll_interval": ["20ms", "60000ms", "60s", "1m"],
    "timeout": ["1ms", "999999999d"],
    "max_payload": ["1073741824B", "1048576KiB", "1024MiB", "1GiB"],
}
BAD_URLS = [
    *("x", "host/path", "//host", "/path", "http:", "http:host", "http://", "http:///path", "http://?q"),
    *(
        "http://#f",
        "http://:80",
        "http://:80/x",
        "http://user@",
        "http://u:p@/x",
        "http://u@:80",
        "mailto:a@b",
        "http://u:p@host:8080/",
        "HTTPS://u@host?q",
        "http://a@b@host/",
    ),
    *(
        "ftp://host/",
        "httpx://host/",
        "://host",
        "http://[::1/x",
        "http://::1]/",
        "http://[]/",
        "http://ho st/",
    ),
    *("http://host/\tx", "http://host/\n", " http://host/", "http://host/\x7f"),
]
GOOD_URLS = [
    *("http://h", "https://host/path?q=1#f", "HTTP://HOST:80", "http://host/a@b?c@d#e@f"),
    *("http://[::1]:80/", "http://host?q=http://x", "http://ü.example/"),
]
BAD = [
    (name, value)
    for name, setting in SETTINGS.items()
    for value in [*BAD_BY_KIND[setting.kind], *SENSELESS.get(name, ())]
    if (name, value) != ("max_recoveries", 0)
]
GOOD = [
    (name, value)
    for name, s in SETTINGS.items()
    for value in [*EDGES.get(name, GOOD_BY_KIND[s.kind]), *s.words]
    if name != "pool" or value == "x"  # the pool there is
]


@pytest.fixture(scope="module")
def migrated(pg_server: PgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GetPlace]:
    """Return `migrated("pg15")`: a database with all tables, made on first use and kept for this module."""
    made: dict[str, Place] = {}
    with ExitStack() as stack:

        def get(name: str) -> Place:
            if name not in made:
                if name == "sqlite":
                    made[name] = Place(str(tmp_path_factory.mktemp("lanes") / "penstock.db"))
                else:
                    server = pg_server(int(name.removeprefix("pg")))
                    made[name] = Place(stack.enter_context(server.database()), server)
                stack.enter_context(closing(made[name]))
                migrate(made[name].database(), made[name].package)
            return made[name]

        yield get


@pytest.fixture(params=["sqlite", "pg15", "pg18"])
def place(request: pytest.FixtureRequest, migrated: GetPlace) -> Place:
    return migrated(request.param)


@pytest.fixture
def database(place: Place) -> Iterator[Database]:
    with closing(place.open_database()) as database:
        yield database


@pytest.fixture
def sql(place: Place) -> Iterator[Plain]:
    """Return a plain connection to a database that has one lane, `pay`."""
    with closing(place.open_plain()) as sql:
        yield only_pay(sql)


@pytest.fixture(params=["pg15", "pg18"])
def postgres_place(request: pytest.FixtureRequest, migrated: GetPlace) -> Place:
    return migrated(request.param)


@pytest.fixture
def pg(postgres_place: Place) -> Iterator[Plain]:
    """Return the same as `sql`, for what only PostgreSQL has."""
    with closing(postgres_place.open_plain()) as pg:
        yield only_pay(pg)


def only_pay(sql: Plain) -> Plain:
    for table in ("lanes", "pools", "audit"):
        sql(f"DELETE FROM penstock.{table}")
    sql("INSERT INTO penstock.pools (name) VALUES ('x')")
    sql("DELETE FROM penstock.audit")
    sql("INSERT INTO penstock.lanes (name) VALUES ('pay')")
    return sql


def pay(sql: Plain, *columns: str) -> tuple[object, ...]:
    return sql(f"SELECT {', '.join(columns)} FROM penstock.lanes WHERE name = 'pay'")[0]


def refusal(sql: Plain, setting: str, value: object, table: str = "lanes") -> str | None:
    """Try to change the setting and return the first line of what the database says; None = accepted."""
    try:
        sql(f"UPDATE penstock.{table} SET {setting} = %s", value)
    except sql.refusal as error:
        return str(error).splitlines()[0]
    return None


def complaint(setting: str, value: object) -> str | None:
    """Return what Penstock itself says to this value; None = accepted."""
    try:
        lane("pay", **{setting: value})
    except InvalidSetting as error:
        return str(error)
    return None


def test_a_lane_made_by_sql_has_every_setting_with_its_default(database: Database, sql: Plain) -> None:
    loaded = database.read(load_lanes)["pay"]

    assert loaded.settings == lane("pay").settings
    assert (loaded.id, loaded.version) == pay(sql, "id", "version")
    assert {name: type(value) for name, value in loaded.settings.items()} == {
        name: type(setting.default) for name, setting in SETTINGS.items()
    }


def test_a_plain_update_is_versioned_and_audited(sql: Plain) -> None:
    sql("UPDATE penstock.lanes SET batch_size = 1000, enabled = false, rate = '5/s' WHERE name = 'pay'")

    _, (actor, action, before, after, reason) = sql.audit()
    assert (action, reason) == ("lane.update", None)
    assert json.loads(before) == {"batch_size": 500, "enabled": True, "rate": None}
    assert json.loads(after) == {"batch_size": 1000, "enabled": False, "rate": "5/s"}
    assert pay(sql, "batch_size", "version", "updated_by") == (1000, 2, actor)
    [[lane_id, at]] = sql("SELECT lane, at FROM penstock.audit WHERE action = 'lane.update'")
    assert (lane_id, at) == pay(sql, "id", "updated_at")


def test_an_update_that_changes_nothing_leaves_no_trace(sql: Plain) -> None:
    before = pay(sql, "version", "updated_at", "updated_by")

    sql("UPDATE penstock.lanes SET batch_size = 500, rate = NULL, paused = false, enabled = true")

    assert pay(sql, "version", "updated_at", "updated_by") == before
    assert [action for _, action, *_ in sql.audit()] == ["lane.create"]


def test_every_row_of_an_update_gets_its_own_audit_row(sql: Plain) -> None:
    sql("INSERT INTO penstock.lanes (name, weight) VALUES ('other', 1), ('light', 7)")

    sql("UPDATE penstock.lanes SET weight = 7")

    changed = sql("SELECT lane, count(*) FROM penstock.audit WHERE action = 'lane.update' GROUP BY 1")
    assert sorted(changed) == sorted(
        (lane_id, 1) for (lane_id,) in sql("SELECT id FROM penstock.lanes WHERE name <> 'light'")
    )


def test_a_pause_is_a_change_with_its_reason(sql: Plain) -> None:
    until = datetime(2030, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    stored = until if sql.prefix == "penstock." else int(until.timestamp() * 1_000_000)

    sql("UPDATE penstock.lanes SET paused = true, pause_reason = 'storm', paused_until = %s", stored)

    *_, (_, action, before, after, reason) = sql.audit()
    assert (action, reason) == ("lane.update", "storm")
    assert json.loads(before) == {"paused": False, "pause_reason": None, "paused_until": None}
    after = json.loads(after)
    assert datetime.fromisoformat(after.pop("paused_until")) == until
    assert after == {"paused": True, "pause_reason": "storm"}
    assert pay(sql, "version") == (2,)


def test_creating_and_deleting_a_lane_is_audited_whole(sql: Plain) -> None:
    sql("DELETE FROM penstock.lanes WHERE name = 'pay'")

    (_, created, none, after, _), (_, deleted, before, nothing, _) = sql.audit()
    assert (created, none, deleted, nothing) == ("lane.create", None, "lane.delete", None)
    assert json.loads(before) == json.loads(after)
    given = {name: setting.default for name, setting in SETTINGS.items() if setting.default is not None}
    assert json.loads(after) == {"name": "pay", "paused": False, **given}


def test_an_upsert_is_an_update(sql: Plain) -> None:
    upsert = "INSERT INTO penstock.lanes (name, weight) VALUES ('pay', 3) ON CONFLICT (name) DO "

    sql(upsert + "NOTHING")
    sql(upsert + "UPDATE SET weight = excluded.weight")

    assert [action for _, action, *_ in sql.audit()] == ["lane.create", "lane.update"]
    assert pay(sql, "weight", "version") == (3, 2)


def test_every_bad_setting_is_refused_with_its_name_and_nothing_is_written(sql: Plain) -> None:
    assert {name for name, _ in BAD} == set(SETTINGS)
    sql("UPDATE penstock.lanes SET weight = 2")

    said = {(name, value): refusal(sql, name, value) for name, value in BAD}

    unnamed = {key: text for key, text in said.items() if not text or f"lanes.{key[0]}" not in text}
    assert unnamed == {}
    own = {key: complaint(*key) for key in BAD}
    assert {key: text for key, text in own.items() if not text or not text.startswith(f"{key[0]}: ")} == {}
    assert (pay(sql, "version"), len(sql.audit())) == ((2,), 2)


def test_every_good_setting_is_accepted(sql: Plain) -> None:
    assert {name for name, _ in GOOD} == set(SETTINGS)

    said = {(name, value): refusal(sql, name, value) for name, value in GOOD}

    assert {key: text for key, text in said.items() if text} == {}
    assert {key: problem for key in GOOD if (problem := complaint(*key))} == {}


def test_a_target_that_http_cannot_call_is_refused_whoever_writes_it(sql: Plain) -> None:
    """A lane of another sink may call its target what it likes, until it is to be called."""
    for url in [*BAD_URLS, *GOOD_URLS]:
        sql("UPDATE penstock.lanes SET sink = 'console', target = %s", url)
        by_sql, own = refusal(sql, "sink", "http") or "", ""
        try:
            lane("pay", sink="http", target=url)
        except InvalidSetting as error:
            own = str(error)
        assert ("lanes.target:" in by_sql, own.startswith("target:")) == (url in BAD_URLS,) * 2, url
    with pytest.raises(sql.refusal, match=r"lanes\.target"):
        sql("INSERT INTO penstock.lanes (name, sink, target) VALUES ('new', 'http', 'nowhere')")


def test_a_lane_with_a_senseless_value_of_old_can_be_paused_and_mended(place: Place, sql: Plain) -> None:
    off = "DROP TRIGGER {}" if place.server is None else "ALTER TABLE penstock.lanes DISABLE TRIGGER {}"
    trigger = "penstock_lanes_sense_update" if place.server is None else "lanes_sense_update"
    sql("BEGIN")
    [*kept] = sql("SELECT sql FROM sqlite_master WHERE name = %s", trigger) if place.server is None else []
    sql(off.format(trigger))
    sql("UPDATE penstock.lanes SET lease = '1ms'")
    for [again] in kept or [(f"ALTER TABLE penstock.lanes ENABLE TRIGGER {trigger}",)]:
        sql(again)
    sql("COMMIT")

    sql("UPDATE penstock.lanes SET paused = true, weight = 3")
    assert "lanes.lease:" in str(refusal(sql, "timeout", "3s"))
    sql("UPDATE penstock.lanes SET timeout = '3s', lease = '10s'")
    assert pay(sql, "lease", "weight") == ("10s", 3)


@pytest.mark.parametrize(
    ("setting", "alphabet"),
    [("jitter", "07msd -"), ("rate", "09/sm "), ("max_payload", "1BKi."), ("misfire", "send_now")],
)
def test_the_database_refuses_exactly_what_penstock_refuses(sql: Plain, setting: str, alphabet: str) -> None:
    texts = ["".join(letters) for size in range(4) for letters in product(alphabet, repeat=size)]

    differ = [text for text in texts if bool(refusal(sql, setting, text)) != bool(complaint(setting, text))]

    assert differ == []


@pytest.mark.parametrize(("setting", "value"), [("batch_size", 2**31), ("target", "a\0b")])
def test_what_one_database_cannot_keep_none_accepts(sql: Plain, setting: str, value: object) -> None:
    assert complaint(setting, value)
    with pytest.raises((sql.refusal, psycopg.DataError)):
        sql(f"UPDATE penstock.lanes SET {setting} = %s", value)


def test_the_retention_class_follows_the_retention(sql: Plain) -> None:
    for retention, days in RETENTION_DAYS.items():
        sql("UPDATE penstock.lanes SET retention = %s", retention)
        assert pay(sql, "keep") == (days,)


@pytest.mark.parametrize("name", ["", "two words", "-dash", "ä", "x" * 64, "x\t", ".dot"])
def test_a_name_that_is_no_name_is_refused(sql: Plain, name: str) -> None:
    for table in ("lanes", "pools"):
        with pytest.raises(sql.refusal, match=f"penstock: {table}.name: .*use 1 to 63 of A-Z a-z 0-9"):
            sql(f"INSERT INTO penstock.{table} (name) VALUES (%s)", name)
    assert sql("SELECT name FROM penstock.lanes") == [("pay",)]


def test_a_lane_cannot_be_renamed(sql: Plain) -> None:
    assert "lanes.name: a lane cannot be renamed" in (refusal(sql, "name", "salary") or "")


def test_who_names_himself_is_the_actor(sql: Plain) -> None:
    sql("UPDATE penstock.lanes SET weight = 2, updated_by = 'alice'")

    assert sql.audit()[-1][0] == "alice"
    assert pay(sql, "updated_by") == ("alice",)


def test_who_does_not_name_himself_is_not_taken_for_the_last_one(sql: Plain) -> None:
    nobody = sql.audit()[0][0]
    sql("UPDATE penstock.lanes SET weight = 2, updated_by = 'alice'")
    sql("UPDATE penstock.lanes SET weight = 3")

    assert sql.audit()[-1][0] == nobody
    assert pay(sql, "updated_by") == (nobody,)


def test_a_lane_is_put_by_what_changed_and_audited_to_its_actor(database: Database, sql: Plain) -> None:
    wanted = lane("pay", weight=2, target="http://example.test/hook")
    first = database.write(lambda tx: put_lane(tx, wanted, "alice"))
    second = database.write(lambda tx: put_lane(tx, lane("pay", weight=3), "alice"))

    assert (first.settings, second["weight"], second["target"]) == (wanted.settings, 3, None)
    assert (first.version, second.version) == (2, 3)
    assert database.read(load_lanes) == {"pay": second}
    _, _, (actor, action, before, after, _) = sql.audit()
    assert (actor, action) == ("alice", "lane.update")
    assert json.loads(before) == {"weight": 2, "target": "http://example.test/hook"}
    assert json.loads(after) == {"weight": 3, "target": None}


def test_a_lane_that_is_as_it_should_be_is_not_touched(database: Database, sql: Plain) -> None:
    sql("""UPDATE penstock.lanes SET retry = '[ "0s", "60s" ]'""")
    stored = database.read(load_lanes)["pay"]
    before = sql.audit()

    again = database.write(lambda tx: put_lane(tx, lane("pay", retry=["0s", "1m"]), "alice"))

    assert again == stored
    assert sql.audit() == before


def test_nodes_that_create_the_same_lane_agree(place: Place, sql: Plain) -> None:
    start = Barrier(4)

    def put(_: int) -> int:
        with closing(place.open_database()) as node:
            start.wait()
            return node.write(lambda tx: put_lane(tx, lane("new", weight=4), "alice")).id

    with ThreadPoolExecutor(4) as threads:
        numbers = set(threads.map(put, range(4)))

    assert len(numbers) == 1
    assert [action for _, action, *_ in sql.audit()] == ["lane.create"] * 2


def test_pools_are_checked_versioned_and_audited_too(sql: Plain) -> None:
    sql("DELETE FROM penstock.pools")
    sql("INSERT INTO penstock.pools (name, rate, key) VALUES ('web', '200/s', 'tenant')")
    bad = [("rate", "5/d"), ("burst", 0), ("burst", 1_000_000_001), ("max_in_flight", 0), ("key", "lane"),
           ("paused", None)]  # fmt: skip

    said = {name: refusal(sql, name, value, "pools") for name, value in bad}
    assert {name: text for name, text in said.items() if not text or f"pools.{name}" not in text} == {}
    sql("UPDATE penstock.pools SET rate = NULL, burst = 7")
    sql("UPDATE penstock.pools SET rate = NULL, burst = 7")

    assert sql("SELECT rate, burst, version FROM penstock.pools") == [(None, 7, 2)]
    *_, (_, created, *_), (_, changed, before, after, _) = sql.audit()
    assert (created, changed) == ("pool.create", "pool.update")
    assert json.loads(before) == {"name": "web", "rate": "200/s", "burst": None}
    assert json.loads(after) == {"name": "web", "rate": None, "burst": 7}


def test_a_number_is_never_given_to_a_second_lane(sql: Plain) -> None:
    before = pay(sql, "id")
    sql("DELETE FROM penstock.lanes")
    sql("INSERT INTO penstock.lanes (name) VALUES ('pay')")

    assert pay(sql, "id") > before


def test_recursive_triggers_change_nothing(place: Place, sql: Plain) -> None:
    if place.server is None:
        sql("PRAGMA recursive_triggers = on")
    sql("UPDATE penstock.lanes SET weight = 2")

    assert pay(sql, "version") == (2,)
    assert len(sql.audit()) == 2


def test_postgres_refuses_in_the_same_words_as_penstock(pg: Plain) -> None:
    terse = {("rate", "99999999999/s")}  # there PostgreSQL names no maximum
    alike = {key for key in BAD if SETTINGS[key[0]].kind != "retry" and "\n" not in str(key[1])} - terse
    differ = {
        key: (said, own)
        for key in alike
        if (said := refusal(pg, *key)) != (own := f"penstock: lanes.{complaint(*key)}")
    }

    assert differ == {}


def test_postgres_tells_a_program_which_column_it_was(pg: Plain) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        pg("UPDATE penstock.lanes SET jitter = '4 sec'")

    told = refused.value.diag
    assert (told.schema_name, told.table_name, told.column_name) == ("penstock", "lanes", "jitter")
    assert told.message_primary == (
        "penstock: lanes.jitter: '4 sec' is not a duration: write 5s, 250ms, 1m, 2h or 7d"
    )


def test_the_actor_of_a_transaction_is_the_one_it_set(pg: Plain) -> None:
    with pg.connection.transaction():
        pg("SELECT set_config('penstock.actor', 'bob', true)")
        pg("UPDATE penstock.lanes SET weight = 2")
    pg("UPDATE penstock.lanes SET weight = 3")

    assert [actor for actor, *_ in pg.audit()] == ["postgres", "bob", "postgres"]


def test_a_hostile_search_path_changes_nothing(pg: Plain) -> None:
    pg("CREATE SCHEMA evil")
    for function in (
        "now() RETURNS timestamptz",
        "to_jsonb(anyelement) RETURNS jsonb",
        "format(text, text) RETURNS text",
    ):
        pg(f"CREATE FUNCTION evil.{function} LANGUAGE plpgsql AS $$ BEGIN RAISE 'gotcha'; END $$")
    for name in ("audit", "lanes", "migrations", "jsonb", "numeric"):
        pg(f"CREATE TEMPORARY TABLE {name} (x int)")
    pg("SET search_path = pg_temp, evil, pg_catalog")

    pg("UPDATE penstock.lanes SET jitter = '4s'")

    assert pg.audit()[-1][1] == "lane.update"
    assert pay(pg, "jitter", "version") == ("4s", 2)
    assert "not a duration" in (refusal(pg, "jitter", "x") or "")


def test_who_may_change_a_lane_can_neither_escape_nor_forge_the_audit(
    postgres_place: Place, pg: Plain
) -> None:
    with (
        role(pg) as name,
        closing(Place(postgres_place.url.replace("postgres@", f"{name}@"), postgres_place.server)) as own,
    ):
        operator = own.plain()
        operator("UPDATE penstock.lanes SET weight = 2 WHERE name = 'pay'")
        operator("CREATE TEMPORARY TABLE t (id int)")

        for forgery in (
            "INSERT INTO penstock.audit (actor, action) VALUES ('root', 'lane.update')",
            "DELETE FROM penstock.audit",
            "CREATE TRIGGER x AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION penstock.audit_settings('x')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                operator(forgery)
        assert pg.audit()[-1][:2] == (name, "lane.update")


@contextmanager
def role(admin: Plain) -> Iterator[str]:
    """Give the name of a user who may read and change lanes, and nothing else."""
    admin("CREATE ROLE lane_operator LOGIN")
    try:
        admin("GRANT USAGE ON SCHEMA penstock TO lane_operator")
        admin("GRANT SELECT, UPDATE ON penstock.lanes TO lane_operator")
        yield "lane_operator"
    finally:
        admin("DROP OWNED BY lane_operator CASCADE")
        admin("DROP ROLE lane_operator")


def test_the_pool_of_a_lane_exists_and_stays(sql: Plain) -> None:
    assert "penstock: lanes.pool: unknown pool" in str(refusal(sql, "pool", "nope"))
    with pytest.raises(sql.refusal, match=r"lanes\.pool: unknown pool"):
        sql("INSERT INTO penstock.lanes (name, pool) VALUES ('new', 'nope')")
    sql("UPDATE penstock.lanes SET pool = 'x'")
    sql("UPDATE penstock.lanes SET pool = 'x', batch_size = 7")
    with pytest.raises(sql.refusal, match="used by a lane"):
        sql("DELETE FROM penstock.pools")

    sql("UPDATE penstock.lanes SET pool = NULL")
    sql("DELETE FROM penstock.pools")


def test_penstock_itself_refuses_an_unknown_pool(database: Database, sql: Plain) -> None:
    for wanted in (lane("pay", pool="nope"), lane("new", pool="y")):
        with pytest.raises(InvalidSetting, match="unknown pool"):
            database.write(partial(put_lane, lane=wanted, actor="ann"))
    assert sql("SELECT name, pool FROM penstock.lanes") == [("pay", None)]
