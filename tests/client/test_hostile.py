"""Hostile input: refused by name, with the fix, before anything is written; the client goes on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import Client, Enqueued, InvalidJob, Json, KeyConflict, NewJob, UnknownLane
from penstock.domain.pools import pool
from penstock.errors import LaneFull
from penstock.stores.memory import MemoryStore
from tests.client.conftest import LANE, put_lane

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP: Any = 1
for _ in range(100_000):
    DEEP = [DEEP]

# what is said, the field that is named, what the refusal advises
TABLE: list[tuple[str, dict[str, Any], str, str]] = [
    ("naive datetime", {"run_at": NAIVE}, "run_at", "has no time zone: add an offset"),
    ("naive text", {"run_at": "2026-11-15T12:00:00"}, "run_at", "has no time zone"),
    ("no time at all", {"run_at": "soon"}, "run_at", "write a time like"),
    ("start_by first", {"run_at": NOON, "start_by": NOON - timedelta(1)}, "start_by", "set it later"),
    ("finish_by first", {"run_at": NOON, "finish_by": NOON - timedelta(1)}, "finish_by", "set it later"),
    ("not JSON", {"payload": Json("{'a': 1}")}, "payload", "is not JSON"),
    ("cut off", {"payload": Json('{"a": ')}, "payload", "is not JSON"),
    ("no value of JSON's", {"payload": {"at": NOON}}, "payload", "use dict, list, str"),
    ("bytes", {"payload": b"\xff"}, "payload", "use dict, list, str"),
    ("NaN", {"payload": float("nan")}, "payload", "send null or text"),
    ("NaN in text", {"payload": Json("[NaN]")}, "payload", "send null or text"),
    ("infinity", {"payload": [float("-inf")]}, "payload", "send null or text"),
    ("beyond any double", {"payload": Json("1e999")}, "payload", "send null or text"),
    ("endless number", {"payload": Json("9" * 100_000)}, "payload", "send null or text"),
    ("lone surrogate", {"payload": {"a": "\ud800"}}, "payload", "send the text without it"),
    ("lone surrogate, spelled", {"payload": Json(r'"\udfff"')}, "payload", "send the text without it"),
    ("NUL", {"payload": "a\0b"}, "payload", "send the text without it"),
    ("NUL, spelled", {"payload": Json(r'{"a":"\u0000"}')}, "payload", "send the text without it"),
    ("NUL, bare", {"payload": Json('{"a":1}\0')}, "payload", "send the text without it"),
    ("nesting bomb", {"payload": DEEP}, "payload", "nested deeper than 64"),
    ("nesting bomb, text", {"payload": Json("[" * 100_000)}, "payload", "nested deeper than 64"),
    ("loop", {"payload": LOOP}, "payload", "nested deeper than 64"),
    ("duplicate keys", {"payload": Json('{"a":1,"a":2}')}, "payload", "name each key once"),
    ("keys that become equal", {"payload": {1: "a", "1": "b"}}, "payload", "is not text"),
    ("too large", {"payload": "x" * 1024}, "payload", "more than the lane's max_payload of 1KiB"),
    ("too large in UTF-8", {"payload": "💧" * 300}, "payload", "more than the lane's max_payload"),
    ("header in two cases", {"headers": {"X-A": "1", "x-a": "2"}}, "headers", "x-a stands twice"),
    ("unknown pool", {"pool": "wbe"}, "pool", 'unknown pool "wbe"; did you mean web?'),
    ("bad pool", {"pool": "no pool"}, "pool", "use 1 to 63 of"),
    ("group too long", {"group": "ü" * 128}, "group", "use at most 255"),
    ("empty group", {"group": ""}, "group", "leave it out"),
    ("NUL in group", {"group": "a\0"}, "group", "remove the NUL"),
    ("surrogate in key", {"key": "\ud800"}, "key", "remove the lone surrogate"),
    ("number for tenant", {"tenant": 7}, "tenant", "write it as text"),
    ("bad id", {"id": "7"}, "id", "write its 26 letters and digits"),
    ("bad mode", {"mode": "fifo"}, "mode", "is none of immediate, next_on_error, block_on_error"),
    ("bad sequence", {"sequence": 1 << 31}, "sequence", "write a whole number from 0 to 2147483647"),
    ("bad attempts", {"max_attempts": 0}, "max_attempts", "write a whole number from 1 to 1000"),
    ("header injection", {"headers": {"a": "b\r\nc: d"}}, "headers", "holds a line break"),
    ("NUL in target", {"target": "http://a\0b"}, "target", "remove it"),
    ("no such field", {"paylod": 1}, "paylod", "did you mean payload?"),
    ("SQL", {"group": "x" * 300 + "'; DROP TABLE penstock.jobs; --"}, "group", "use at most 255"),
]


def strict(client: Client) -> Client:
    """Return the client; its lane takes a kibibyte and there is one pool."""
    put_lane(client.store, max_payload="1KiB")
    client.store.put_pool(pool("web"), actor="test")
    return client


@pytest.mark.parametrize(("said", "field", "fix"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_bad_input_is_named_with_its_fix(
    memory: MemoryStore, said: dict[str, Any], field: str, fix: str
) -> None:
    with pytest.raises(InvalidJob) as caught:
        strict(Client(memory)).enqueue(LANE, **said)

    assert caught.value.field == field
    assert fix in caught.value.problem


def test_bad_input_writes_nothing_and_the_client_goes_on(client: Client) -> None:
    answers = strict(client).enqueue_many({"lane": LANE, **said} for _, said, _, _ in TABLE)

    assert [answer.field for answer in answers if isinstance(answer, InvalidJob)] == [row[2] for row in TABLE]
    assert client.counts() == {}
    assert not client.enqueue(LANE, "x" * 1022, pool="web").duplicate


@pytest.mark.parametrize("name", ["", "a b", "x" * 64, "ümlaut", "a\0", "\ud800", "-a", 7, None, ["orders"]])
def test_a_name_that_no_lane_can_have(client: Client, name: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        client.enqueue(name)

    assert caught.value.field == "lane"


@pytest.mark.parametrize(
    ("name", "near"), [("order", ("orders",)), ("ORDERS", ("orders",)), ("invoices", ())]
)
def test_an_unknown_lane_is_answered_with_near_ones(client: Client, name: str, near: tuple[str, ...]) -> None:
    with pytest.raises(UnknownLane, match=f'unknown lane "{name}"') as caught:
        client.enqueue(name)

    assert caught.value.near == near
    assert ("did you mean" if near else "penstock lanes list shows those there are") in str(caught.value)
    assert client.counts() == {}


def test_a_lane_made_a_moment_ago_is_known(client: Client) -> None:
    client.enqueue(LANE)
    put_lane(client.store, "invoices")

    client.enqueue("invoices")


def test_a_full_lane_takes_no_more_and_says_so(client: Client) -> None:
    put_lane(client.store, max_depth=3)
    client.enqueue(LANE)

    answers = client.enqueue_many([{"lane": LANE}] * 4)

    assert [type(answer) for answer in answers] == [Enqueued, Enqueued, LaneFull, LaneFull]
    assert str(answers[2]) == 'lane: "orders" is full: it holds max_depth = 3 jobs; try again later'
    with pytest.raises(LaneFull) as caught:
        client.enqueue(LANE)
    assert caught.value.retryable


def test_a_key_with_another_payload_is_refused_with_the_job_that_has_it(client: Client) -> None:
    first = client.enqueue(LANE, {"n": 1}, key="k")

    with pytest.raises(KeyConflict) as caught:
        client.enqueue(LANE, {"n": 1.0}, key="k")

    assert (caught.value.key, caught.value.job_id) == ("k", first.id)
    assert sum(client.counts().values()) == 1


def test_what_looks_like_sql_is_kept_as_text(client: Client) -> None:
    evil = """'); DROP TABLE penstock.jobs; -- " %s :x ? $1 \\"""

    made = client.enqueue(
        LANE, {evil: evil}, group=evil, key=evil, tenant=evil, target=evil, correlation=evil
    )

    job = client.get(made.id)
    assert job.context is not None
    assert (job.context.message_group, job.context.key, job.context.target) == (evil, evil, evil)


def test_a_job_made_by_hand_is_checked_too(client: Client) -> None:
    [refused] = client.enqueue_many([NewJob(lane=LANE, payload='{"a":1,"a":2}')])

    assert isinstance(refused, InvalidJob)
    assert refused.field == "payload"
