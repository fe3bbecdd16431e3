"""`Client("http://…")`: the same methods through a node's API, and the command line with --url."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from click.testing import CliRunner, Result

from penstock import (
    AsyncClient,
    Client,
    InvalidCursor,
    InvalidJob,
    Json,
    KeyConflict,
    LaneFull,
    NotFound,
    PenstockError,
    StoreUnavailable,
    UnknownLane,
)
from penstock import connect as connect_client
from penstock.cli.main import main
from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead, Dispatched
from penstock.domain.pools import pool
from penstock.domain.states import Effect, JobState, Reason
from penstock.errors import Forbidden, InUse, InvalidQuery, InvalidSetting, StoreClosed, VersionChanged
from penstock.stores.remote.store import NotRemote
from penstock.testing.store_suite.factories import claim, settle, some
from penstock.wire import encode, job_object
from tests.api.node import Http, served
from tests.security.conftest import make_key


@pytest.fixture
def node(sqlite_url: str) -> Iterator[Http]:
    with Client(sqlite_url, actor="api") as client, served(client) as http:
        http.node.start()
        yield http


@pytest.fixture
def remote(node: Http) -> Iterator[Client]:
    with Client(node.node.url) as client:
        yield client


def test_jobs_go_in_and_come_back_as_from_the_database(node: Http, remote: Client) -> None:
    id_ = remote.enqueue("orders", Json('{"n":  1.10}'), tenant="t", headers={"A": "b"}, key="k").id
    assert remote.enqueue("orders", Json('{"n":  1.10}'), key="k") == (id_, True)
    here, there = node.node.client.get(id_), remote.get(id_)
    assert json.loads(encode(job_object(there))) == json.loads(encode(job_object(here)))
    assert there.context is not None
    assert there.context.payload == '{"n":  1.10}'
    many = remote.enqueue_many([{"lane": "orders", "payload": n} for n in range(1_500)])
    assert len({one.id for one in many if not isinstance(one, Exception)}) == 1_500


def test_lists_take_the_same_filters(node: Http, remote: Client) -> None:
    ids = [remote.enqueue("orders", {"n": n}).id for n in range(5)]
    line = "lane:orders payload.n>1 created<1h"
    page = remote.list(filter=line, limit=2)
    rest = remote.list(filter=line, limit=2, after=page.next)
    assert [job.id for job in (*page.jobs, *rest.jobs)] == ids[:1:-1]
    assert [job.id for job in remote.list(state="pending", order="due").jobs] == ids
    with pytest.raises(InvalidQuery, match="did you mean lane"):
        remote.list(filter="lnae:x")


@pytest.mark.parametrize(
    "asked",
    [
        {"filter": "lane:nope"},
        {"lane": "nope"},
        {"filter": 'tenant:""'},
        {"filter": 'key:""'},
        {"group": ' a "b"\\ ', "tenant": "t, u", "key": "k\r\n", "filter": "lane:orders"},
        {"lane": "orders", "filter": "lane:orders,nope"},
    ],
)
def test_names_that_nothing_has_find_the_same_from_afar(
    node: Http, remote: Client, asked: dict[str, str]
) -> None:
    odd = {"group": ' a "b"\\ ', "tenant": "t, u", "key": "k\r\n"}
    remote.enqueue("orders", 1, mode="block_on_error", **odd)
    here, there = ([job.id for job in one.list(**asked).jobs] for one in (node.node.client, remote))
    assert there == here
    line = asked.get("filter", "")
    assert remote.preview("hold", line) == node.node.client.preview("hold", line)


def test_payloads_of_a_list_are_exact(node: Http, remote: Client) -> None:
    texts = ['{"n":  1.10, "jobs":[1E2]}', '"\\u00e9 é"', "[ ]", "0.1000000000000000055"]
    for text in texts:
        remote.enqueue("orders", Json(text), run_at=node.node.client.store.now() + timedelta(hours=1))
    shown = [job.context.payload for job in remote.list(payloads=True).jobs if job.context]
    assert shown[::-1] == texts


def test_verbs_and_what_is_told_of_them(node: Http, remote: Client) -> None:
    id_ = remote.enqueue("orders").id
    assert remote.hold(id_, reason="wait").state is JobState.HELD
    assert remote.explain(id_).gate == node.node.client.explain(id_).gate
    assert remote.release(id_, reason="go").effect is Effect.NOW
    assert remote.edit(id_, reason="typo", payload={"n": 2}).state is JobState.PENDING
    assert remote.skip(id_, reason="no").state is JobState.SKIPPED
    refused = remote.cancel(id_, reason="x")
    assert (refused.effect, refused.state) == (Effect.REFUSED, JobState.SKIPPED)
    assert [row.action for row in remote.timeline(id_).audit] == ["hold", "release", "edit", "skip"]
    assert [version.payload for version in remote.store.payload_versions(id_)] == [None, '{"n": 2}']


def test_an_operation_is_begun_and_watched_from_afar(node: Http, remote: Client) -> None:
    id_ = remote.enqueue("orders", {"n": 1}).id
    store = node.node.client.store
    settle(store, some(claim(store)), Dead(Reason.EXHAUSTED, "boom"))
    assert remote.preview("retry", "error:boom").matched == 1
    started = remote.start("edit", "error:boom", reason="fixed", change={"merge": {"n": 2}}, key="once é→")
    assert (
        remote.start("edit", "error:boom", reason="fixed", change={"merge": {"n": 2}}, key="once é→").id
        == started.id
    )
    store.collect_operation(started.id)
    store.work_operation(started.id)
    store.work_operation(started.id)
    ended = remote.operation(started.id)
    assert (ended.state, ended.done) == ("done", 1)
    assert remote.operations().operations == [ended]
    assert job_object(remote.get(id_))["payload"] == '{"n": 2}'
    assert remote.stop(started.id, reason="late").state == "done"


def test_lanes_pools_groups_and_pauses(node: Http, remote: Client) -> None:
    store = remote.store
    made = store.put_lane(lane("pay", batch_size=7), actor="x", expect=0)
    assert made.version == 1
    assert store.lanes()["pay"].settings == node.node.client.store.lanes()["pay"].settings
    with pytest.raises(VersionChanged):
        store.put_lane(lane("pay", batch_size=8), actor="x", expect=0)
    assert store.pause_lane("pay", paused=True, actor="x", reason="lunch").pause_reason == "lunch"
    assert not store.pause_lane("pay", paused=False, actor="x", reason="back").paused
    store.put_pool(pool("p"), actor="x")
    with pytest.raises(VersionChanged, match=r'^pool "p" is at version 1 now'):
        store.put_pool(pool("p", rate="1/s"), actor="x", expect=0)
    store.put_lane(lane("pay", pool="p"), actor="x")
    with pytest.raises(InUse, match=r'^pool "p" is'):
        store.delete_pool("p", actor="x", reason="over")
    store.delete_lane("pay", actor="x", reason="over")
    store.delete_pool("p", actor="x", reason="over")
    assert "pay" not in store.lanes()
    assert store.pools() == {}
    assert store.pause_store(paused=True, actor="x", reason="fire") is not None
    assert store.pause_store(paused=False, actor="x", reason="out") is None
    assert store.store_pause() is None
    number = node.node.client.store.register_node("a")
    node.node.client.store.beat(number, '{"drains": 3}')
    drain = store.drain_node(number, draining=True, actor="x", reason="a new machine")
    assert drain is not None
    assert store.nodes()[0].drain == drain
    assert store.nodes()[0].note == '{"drains":3}'
    assert store.drain_node(number, draining=False, actor="x", reason="it stays") is None
    paused = store.pause_target("http://a.example", paused=True, actor="x", reason="they move")
    assert paused is not None
    assert store.targets() == node.node.client.store.targets()
    assert store.targets()["http://a.example"].pause == paused
    assert store.pause_target("http://a.example", paused=False, actor="x", reason="there") is None
    assert store.list_groups().groups == []
    assert store.targets() == {}
    assert store.audit_log(limit=1).entries[0].actor == "api"


def test_groups_are_told_as_from_the_database(node: Http, remote: Client) -> None:
    later = node.node.client.store.now() + timedelta(hours=1)
    remote.enqueue("orders", group="g", mode="block_on_error", run_at=later)
    assert remote.groups() == node.node.client.groups()
    assert remote.group("orders", "g").next_at == later


def test_a_report_reaches_the_job(node: Http, remote: Client) -> None:
    id_ = remote.enqueue("orders").id
    some(claim(node.node.client.store))
    assert remote.report(id_, 1, "succeeded", result={"ok": True}).applied
    assert remote.wait(id_).state is JobState.SUCCEEDED


def test_a_report_means_the_same_from_afar(node: Http, remote: Client) -> None:
    near = node.node.client
    near.store.put_lane(lane("orders", run_timeout="2h", retry=["0s"]), actor="me")
    ids = [remote.enqueue("orders").id for _ in range(3)]
    some(claim(near.store))

    assert remote.report(ids[0], 1, "started").applied
    running = near.get(ids[0]).live
    assert running.deadline is not None
    assert running.started_at is not None
    assert running.deadline - running.started_at == timedelta(hours=2)
    assert remote.report(ids[1], 1, "failed", error="boom").applied  # the last try there is
    assert (near.get(ids[1]).live.reason, near.get(ids[1]).error) == (Reason.EXHAUSTED, "boom")
    assert remote.report(ids[2], 1, "deferred", error="busy", after=timedelta(minutes=5)).applied
    assert near.get(ids[2]).state is JobState.PENDING


def test_refusals_are_the_same_errors(node: Http, remote: Client) -> None:
    with pytest.raises(UnknownLane, match="did you mean orders"):
        remote.enqueue("ordres")
    with pytest.raises(InvalidJob, match="group"):
        remote.enqueue("orders", group="")
    remote.enqueue("orders", 1, key="k")
    with pytest.raises(KeyConflict, match="already belongs"):
        remote.enqueue("orders", 2, key="k")
    taken, nowhere = remote.store.enqueue([NewJob("orders", payload="2", key="k"), NewJob("ordres")])
    assert isinstance(taken, KeyConflict)
    assert taken.key == "k"
    assert isinstance(nowhere, UnknownLane)
    assert (nowhere.lane, nowhere.near) == ("ordres", ("orders",))
    [far] = remote.store.enqueue([NewJob("zzz")])
    assert isinstance(far, UnknownLane)
    assert far.lane == "zzz"
    with pytest.raises(NotFound):
        remote.get("01K9Z3Y8V6J3T5R2Q1P0N9M8K7")
    for there in (remote, node.node.client):
        with pytest.raises(InvalidCursor, match=r"^this is no place to go on from: it is damaged"):
            there.list(after="x")
    with pytest.raises(NotRemote, match="needs the database itself"):
        remote.store.register_node("x")


def test_a_full_lane_may_be_tried_again_from_afar_too(node: Http, remote: Client) -> None:
    node.node.client.store.put_lane(lane("small", max_depth=1), actor="me")
    remote.enqueue("small")
    with pytest.raises(LaneFull) as caught:
        remote.enqueue("small")
    assert (caught.value.retryable, caught.value.lane, caught.value.max_depth) == (True, "small", 1)


def test_counts_are_of_every_state(node: Http, remote: Client) -> None:
    ids = [remote.enqueue("orders").id for _ in range(3)]
    remote.cancel(ids[0], reason="no")
    remote.skip(ids[1], reason="no")
    assert remote.counts() == node.node.client.counts()
    assert remote.counts()["orders", JobState.CANCELLED] == 1


def test_a_client_that_is_closed_asks_nobody(node: Http) -> None:
    client = Client(node.node.url)
    client.close()
    with pytest.raises(StoreClosed, match="open it again"):
        client.enqueue("orders")


async def test_asyncio_code_shows_its_key_too(sqlite_url: str) -> None:
    with Client(sqlite_url, actor="api") as client, served(client, login=True) as http:
        http.node.start()
        key = make_key(client.store, "shop", "enqueue", "read")["Authorization"].removeprefix("Bearer ")
        async with AsyncClient(http.node.url, api_key=key) as shop:
            assert (await shop.list()).jobs == []


@pytest.mark.parametrize(
    "url", ["http://", "http://user:secret@host", "http://host?x=1", "http://a..b", "http://a b"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="host:port"):
        Client(url)


def test_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(StoreUnavailable, match=r"http://127\.0\.0\.1:9"):
        Client("http://127.0.0.1:9")


def test_the_command_line_speaks_to_a_node(node: Http) -> None:
    def penstock(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    url = node.node.url
    id_ = node.node.client.enqueue("orders", {"n": 1}).id
    shown = penstock("jobs", "list", "lane:orders", "--url", url, "--json")
    assert [job["id"] for job in json.loads(shown.stdout)["jobs"]] == [id_]
    assert penstock("jobs", "hold", id_, "--reason", "x", "--url", url).exit_code == 0
    assert "held" in penstock("jobs", "show", id_, "--url", url).stdout
    assert penstock("lanes", "list", "--url", url).exit_code == 0
    assert "write http://HOST" in penstock("lanes", "list", "--url", "nowhere").stderr


def test_a_node_that_wants_to_know_who_asks_is_told_by_a_key(sqlite_url: str) -> None:
    with Client(sqlite_url, actor="api") as client, served(client, login=True) as http:
        http.node.start()
        key = make_key(client.store, "shop", "enqueue", "read")["Authorization"].removeprefix("Bearer ")
        with pytest.raises(PenstockError, match="key") as nobody, connect_client(http.node.url) as nameless:
            nameless.enqueue("orders", 1)
        with connect_client(http.node.url, api_key=f"{key}\r\n") as shop:  # as it is in a file
            made = shop.enqueue("orders", 1, key="k")
            assert shop.get(made.id).state is JobState.PENDING
            with pytest.raises(Forbidden, match=r"^key:shop may not do this: it needs the scope operate$"):
                shop.hold(made.id, reason="x")

    assert key not in str(nobody.value)


def test_a_key_that_may_only_enqueue_or_only_report_is_enough_for_that(sqlite_url: str) -> None:
    """Producers and executors get the narrowest key: they must not need to see lanes or jobs."""
    with Client(sqlite_url, actor="api") as client, served(client, login=True) as http:
        http.node.start()
        producer, executor = (
            make_key(client.store, scope, scope)["Authorization"].removeprefix("Bearer ")
            for scope in ("enqueue", "report")
        )
        with Client(http.node.url, api_key=producer) as shop:
            made = shop.enqueue("orders", {"n": 1})
            nowhere, large, pool = shop.enqueue_many(
                [
                    {"lane": "order"},
                    {"lane": "orders", "payload": "x" * (7 << 20)},
                    {"lane": "orders", "pool": "nobodys"},
                ]
            )
            with pytest.raises(Forbidden, match="read"):
                shop.get(made.id)
        shell = CliRunner(env={"PENSTOCK_API_KEY": producer})
        url = ["--url", http.node.url]
        by_hand = shell.invoke(main, ["enqueue", "orders", "7", "--group", "a", *url])
        lines = shell.invoke(main, ["enqueue", "orders", "-", *url], input='{"payload": 8, "group": "a"}')
        assert (by_hand.exit_code, lines.exit_code) == (0, 0), (by_hand.stderr, lines.stderr)
        client.store.put_lane(lane("orders", complete_on="reported"), actor="test")
        claimed = some(claim(client.store, lane="orders"))
        settle(client.store, claimed, Dispatched(timedelta(minutes=1)))
        with Client(http.node.url, api_key=executor) as worker:
            assert worker.report(made.id, 1, "succeeded", result={"n": 2}).applied
            with pytest.raises(InvalidJob, match="none of started"):
                worker.report(made.id, 1, "done")
        assert client.get(made.id).state is JobState.SUCCEEDED
    assert isinstance(nowhere, UnknownLane)
    assert nowhere.near == ("orders",)
    assert [(type(one), getattr(one, "field", "")) for one in (large, pool)] == [
        (InvalidJob, "payload"),
        (InvalidJob, "pool"),
    ]
