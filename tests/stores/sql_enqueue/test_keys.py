"""Idempotency keys by plain INSERT and by Penstock itself are the same keys."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.outcomes import Dead
from penstock.domain.states import Reason
from penstock.errors import KeyConflict
from penstock.ports.store import Ask
from tests.stores.places import Plain
from tests.stores.sql_enqueue.door import Door

PAYLOADS = [None, "1", '{"s": "ü🚰"}']
ENQUEUE = "INSERT INTO penstock.enqueue (lane, key, payload) VALUES (%s, %s, %s)"


def said_by_python(door: Door, lane: str, payload: str | None) -> Enqueued | Exception:
    return door.store.enqueue([NewJob(lane=lane, key="k", payload=payload)])[0]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_same_thing_said_twice_is_one_job(door: Door, payload: str | None) -> None:
    lane = door.lane()

    for _ in range(2):
        door.insert(lane=lane, key="k", payload=payload)

    assert door.deliver(lane) == [payload]
    door.insert(lane=lane, key="k", payload=payload)
    assert len(door.ids(lane)) == 1


@pytest.mark.parametrize("payload", PAYLOADS)
def test_another_payload_is_refused(door: Door, payload: str | None) -> None:
    lane = door.lane()
    door.insert(lane=lane, key="k", payload=payload)
    [job_id] = door.ids(lane)

    refusal = door.refusal(lane=lane, key="k", payload='"other"')

    named = (
        f'key "k" already belongs to job {job_id}, which has'
        if door.is_postgres
        else "key: it already belongs to a job with"
    )
    assert refusal.startswith(f"penstock: {named} a different payload")
    door.deliver(lane)
    assert door.refusal(lane=lane, key="k", payload='"other"') == refusal
    assert door.ids(lane) == [job_id]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_key_made_by_sql_is_known_to_python(door: Door, payload: str | None) -> None:
    lane = door.lane()
    door.insert(lane=lane, key="k", payload=payload)
    [job_id] = door.ids(lane)

    for _ in range(2):
        assert said_by_python(door, lane, payload) == Enqueued(job_id, duplicate=True)
        conflict = said_by_python(door, lane, '"other"')
        assert isinstance(conflict, KeyConflict)
        assert conflict.job_id == job_id
        door.deliver(lane)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_key_made_by_python_is_known_to_sql(door: Door, payload: str | None) -> None:
    lane = door.lane()
    assert isinstance(said_by_python(door, lane, payload), Enqueued)

    for _ in range(2):
        door.insert(lane=lane, key="k", payload=payload)
        assert door.refusal(lane=lane, key="k", payload='"other"').startswith("penstock: key")
        door.deliver(lane)
    assert len(door.ids(lane)) == 1


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_key_answers_when_its_payload_was_dropped(door: Door, payload: str | None) -> None:
    """Python knows it by its hash; SQLite has none to compare with and takes what is said for the same."""
    lane = door.lane(keep_payload=False)
    door.insert(lane=lane, key="k", payload=payload)
    [job_id] = door.ids(lane)
    door.deliver(lane)

    assert door.contexts(lane, "payload") == [(None,)]
    assert said_by_python(door, lane, payload) == Enqueued(job_id, duplicate=True)
    assert isinstance(said_by_python(door, lane, '"other"'), KeyConflict)
    door.insert(lane=lane, key="k", payload=payload)
    assert door.ids(lane) == [job_id]
    if door.is_postgres or payload is None:
        assert door.refusal(lane=lane, key="k", payload='"other"').startswith("penstock: key")


def test_several_keys_of_one_batch_are_compared_each_with_its_own(door: Door) -> None:
    lane = door.lane()
    door.insert_rows(["lane", "key", "payload"], [(lane, str(n), str(n)) for n in range(5)])

    answers = door.store.enqueue([NewJob(lane=lane, key=str(n), payload=str(n % 4)) for n in range(6)])

    kinds = [(type(answer), getattr(answer, "duplicate", None)) for answer in answers]
    assert kinds == [(Enqueued, True)] * 4 + [(KeyConflict, None), (Enqueued, False)]


def test_a_key_whose_time_is_over_is_free(door: Door) -> None:
    lane = door.lane(key_ttl="0s")
    for n, payload in enumerate(["1", "2"]):
        door.insert(lane=lane, key="k", payload=payload)
        assert len(door.ids(lane)) == n + 1
        assert door.deliver(lane) == [payload]

    answer = said_by_python(door, lane, "3")
    assert answer == Enqueued(door.ids(lane)[-1])
    door.deliver(lane)
    door.insert(lane=lane, key="k", payload="4")

    fourth = door.ids(lane)[3]
    assert said_by_python(door, lane, "4") == Enqueued(fourth, duplicate=True)
    assert door.refusal(lane=lane, key="k", payload="3").startswith("penstock: key")


def test_a_key_outlives_its_job_by_key_ttl(door: Door) -> None:
    lane = door.lane(key_ttl="1h")
    door.insert(lane=lane, key="k", payload="1")
    door.deliver(lane)
    [[arrival]] = door.contexts(lane, "arrival")
    ago = "finished_at - interval '%s'" if door.is_postgres else "finished_at - %s"

    def aged(by: str | int) -> None:
        door.sql(f"UPDATE penstock.history SET finished_at = {ago % by} WHERE arrival = {arrival}")

    aged("59 min" if door.is_postgres else 59 * 60_000_000)
    assert door.refusal(lane=lane, key="k", payload="2").startswith("penstock: key")
    aged("1 min" if door.is_postgres else 60_000_000)
    door.insert(lane=lane, key="k", payload="2")
    assert len(door.ids(lane)) == 2


def test_a_dead_job_keeps_its_key(door: Door) -> None:
    lane = door.lane(key_ttl="0s")
    door.insert(lane=lane, key="k", payload="1")
    [job_id] = door.ids(lane)
    claim = door.store.claim(Ask(lane=lane, node=1))
    assert claim is not None
    door.store.settle(claim, {claim.jobs[0].job.arrival: Dead(Reason.PERMANENT, "no")})

    door.insert(lane=lane, key="k", payload="1")
    assert door.ids(lane) == [job_id]


def test_keys_belong_to_lanes(door: Door) -> None:
    lanes = [door.lane(), door.lane()]

    door.insert_rows(["lane", "key", "payload"], [(lane, "k", str(n)) for n, lane in enumerate(lanes)])

    assert [len(door.ids(lane)) for lane in lanes] == [1, 1]


def test_the_key_is_looked_at_before_the_id(door: Door) -> None:
    lane, mine = door.lane(), "01ARZ3NDEKTSV4RRFFQ69G5FA0"

    for _ in range(2):
        door.insert(lane=lane, key="k", id=mine, payload="1")

    assert door.ids(lane) == [mine]


def test_returning_names_the_job_there_is(pg: Door) -> None:
    lane = pg.lane()
    ids = {pg.sql(f"{ENQUEUE} RETURNING id", lane, "k", "1")[0][0] for _ in range(3)}

    assert ids == set(pg.ids(lane))


class Race:
    """One caller has an open transaction with the key, another one comes."""

    def __init__(self, pg: Door, lane: str) -> None:
        self.pg, self.lane = pg, lane
        self.first = pg.place.open_plain()
        self.first("BEGIN")
        [[self.first_id]] = self.first(f"{ENQUEUE} RETURNING id", lane, "k", "1")

    def end(self, how: str, second: Callable[[], object]) -> object:
        """Let the second caller run into the first, end the first; return the second one's answer."""
        with ThreadPoolExecutor(1) as thread, closing(self.first):
            waiting: Future[object] = thread.submit(second)
            while not waiting.done() and not self.pg.sql(
                "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.datname = current_database()"
                " WHERE NOT l.granted AND l.pid IN (SELECT pid FROM pg_stat_activity WHERE datid = d.oid)"
            ):
                pass
            assert not waiting.done()
            self.first(how)
            return waiting.result()


def by_sql(pg: Door, lane: str, payload: str) -> Callable[[], object]:
    def say() -> object:
        with closing(pg.place.open_plain()) as sql:
            return answer(sql, lane, payload)

    return say


def answer(sql: Plain, lane: str, payload: str) -> object:
    try:
        return sql(f"{ENQUEUE} RETURNING id", lane, "k", payload)[0][0]
    except sql.refusal as error:
        return str(error).splitlines()[0]


@pytest.fixture(params=["new", "expired"])
def contested(request: pytest.FixtureRequest, pg: Door) -> str:
    """Return a lane in which the key `k` is new, or was somebody's whose time is over."""
    lane = pg.lane(key_ttl="0s")
    if request.param == "expired":
        pg.insert(lane=lane, key="k", payload="0")
        pg.deliver(lane)
    return lane


def test_who_comes_second_waits_and_learns_of_the_first(pg: Door, contested: str) -> None:
    race = Race(pg, contested)
    assert race.end("COMMIT", by_sql(pg, contested, "1")) == race.first_id
    assert pg.ids(contested)[-1] == race.first_id


def test_who_comes_second_with_another_payload_is_refused(pg: Door, contested: str) -> None:
    race = Race(pg, contested)
    refusal = race.end("COMMIT", by_sql(pg, contested, "2"))
    assert (
        refusal == f'penstock: key "k" already belongs to job {race.first_id}, which has a different payload'
    )


def test_who_comes_second_is_first_when_the_first_gives_up(pg: Door, contested: str) -> None:
    race = Race(pg, contested)
    made = race.end("ROLLBACK", by_sql(pg, contested, "2"))
    assert pg.ids(contested)[-1] == made
    assert made != race.first_id


def test_python_waits_for_sql(pg: Door, contested: str) -> None:
    race = Race(pg, contested)
    assert race.end("COMMIT", lambda: said_by_python(pg, contested, "1")) == Enqueued(
        race.first_id, duplicate=True
    )
