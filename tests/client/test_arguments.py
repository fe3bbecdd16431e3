"""Arguments that are none: every client refuses them by name, in words, and goes on."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from shutil import copyfile
from typing import Any

import pytest

from penstock import AsyncClient, Client, InvalidJob, Json, PenstockError
from penstock.domain.states import Verb
from penstock.errors import InvalidQuery, InvalidSetting
from penstock.stores.memory import MemoryStore
from tests.client.conftest import LANE, memory_store


@pytest.fixture(scope="module", params=["memory", "sqlite", "pg18"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client on each kind of store in turn, one for all: what is refused leaves nothing behind."""
    store: str | MemoryStore
    if request.param == "memory":
        store = memory_store()
    elif request.param == "sqlite":
        file = tmp_path_factory.mktemp("arguments") / "penstock.db"
        store = f"sqlite:///{copyfile(request.getfixturevalue('empty_sqlite'), file)}"
    else:
        store = request.getfixturevalue("empty_postgres")(18)
    with Client(store, actor="ann") as client:
        yield client


Call = Callable[..., Any]
# what is called with what, the field that is named, what the refusal advises
FILTERS: list[tuple[dict[str, Any], str, str]] = [
    ({"group": "o\udcff"}, "group", "lone surrogate"),
    ({"tenant": "\ud800"}, "tenant", "lone surrogate"),
    ({"key": "a\0"}, "key", "NUL"),
    ({"group": "\0"}, "group", "NUL"),
    ({"lane": "\0"}, "lane", "NUL"),
    ({"filter": "group:\ud800"}, "filter", "lone surrogate"),
    ({"after": "\ud800"}, "after", "lone surrogate"),
    ({"key": 7}, "key", "is no text"),
    ({"grop": "a"}, "grop", "did you mean group?"),
    ({"foo": 1}, "foo", "known are filter, lane"),
    ({"limit": "5"}, "limit", "give one from 1 to 500"),
    ({"limit": True}, "limit", "give one from 1 to 500"),
    ({"limit": 0}, "limit", "from 1 to 500"),
    ({"created": "yesterday"}, "created", "give penstock.Span"),
    ({"state": 5}, "state", "give 'dead'"),
    ({"state": [None]}, "state", "is none of"),
    ({"order": "x"}, "order", "is none of newest"),
    ({"payloads": "yes"}, "payloads", "True or False"),
]


@pytest.mark.parametrize(("filters", "field", "advice"), FILTERS, ids=str)
def test_a_filter_that_is_none_is_refused_by_name(
    client: Client, filters: dict[str, Any], field: str, advice: str
) -> None:
    with pytest.raises(InvalidQuery, match=advice) as refused:
        client.list(**filters)
    assert refused.value.field == field


@pytest.mark.parametrize("batch", [0, -1, 1.5, "7", True, 10_001])
def test_a_batch_that_is_none_is_refused_before_a_job_is_taken(client: Client, batch: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidJob, match=r"from 1 to 10000") as refused:
        client.enqueue_stream(iter([{"lane": LANE}]), batch=batch)
    assert refused.value.field == "batch"


@pytest.mark.parametrize("send", ["1", -1, 0, 1 << 31, 1.0, None, True])
def test_a_send_that_is_none_is_not_taken_for_a_late_one(client: Client, send: Any) -> None:  # noqa: ANN401
    job = client.enqueue(LANE).id

    with pytest.raises(InvalidJob, match="give the one that came with the message") as refused:
        client.report(job, send, "succeeded")
    assert refused.value.field == "send"


CALLS: list[tuple[str, Call, type[PenstockError], str]] = [
    ("wait", lambda c, id_: c.wait(id_, "1"), InvalidQuery, "timeout: '1' is no .*give seconds"),
    ("after", lambda c, id_: c.report(id_, 1, "failed", after="soon"), InvalidJob, "after: 'soon' is not a"),
    (
        "error",
        lambda c, id_: c.report(id_, 1, "failed", error=KeyError()),
        InvalidJob,
        r"error: .*str\(error",
    ),
    ("verb", lambda c, id_: c.operate("zap", id_, reason="r"), InvalidJob, "verb: there is no 'zap'; known"),
    ("near", lambda c, id_: c.operate("cancle", id_, reason="r"), InvalidJob, "did you mean cancel?"),
    ("edit", lambda c, id_: c.operate(Verb.EDIT, id_, reason="r"), InvalidJob, r"use edit\(\)"),
    (
        "lane",
        lambda c, id_: c.edit(id_, reason="r", lane="x"),
        InvalidJob,
        "lane: cannot be edited; what can is payload, headers, target, run_at",
    ),
    ("group", lambda c, _: c.group(LANE, "\ud800"), InvalidQuery, "group: holds a lone surrogate"),
]


@pytest.mark.parametrize(("call", "error", "words"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_wrong_argument_is_told_in_words(
    client: Client, call: Call, error: type[PenstockError], words: str
) -> None:
    job = client.enqueue(LANE).id

    with pytest.raises(error, match=words):
        call(client, job)


def test_a_verb_may_be_named(client: Client) -> None:
    assert client.operate("cancel", client.enqueue(LANE).id, reason="r").state is not None


async def test_an_async_client_refuses_the_same(memory: MemoryStore) -> None:
    async with AsyncClient(memory) as client:
        [job] = await client.admitted([{"lane": LANE}])
        assert job.id is not None
        with pytest.raises(InvalidJob, match="batch"):
            client.enqueue_stream([], batch=0)
        with pytest.raises(InvalidQuery, match="timeout"):
            await client.wait(job.id, "1")  # type: ignore[arg-type]
        with pytest.raises(InvalidQuery, match="foo"):
            await client.list(foo=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("actor", ["\ud800", "", None, "a\0"])
def test_an_actor_that_no_audit_can_keep_is_refused(memory: MemoryStore, actor: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidSetting, match="actor"):
        Client(memory, actor=actor)


@pytest.mark.parametrize("store", [None, "", 5, object()])
def test_a_client_needs_a_store(store: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidSetting, match="store: give the database"):
        Client(store)


def test_json_that_is_no_text_is_one_of_our_errors() -> None:
    with pytest.raises(PenstockError, match=r"use json\.dumps"):
        Json(None)  # type: ignore[arg-type]


def test_waiting_for_no_time_is_fine(client: Client) -> None:
    id_ = client.enqueue(LANE).id
    assert client.wait(id_, timedelta(0)).state.label == client.wait(id_, 0.01).state.label == "pending"
    with pytest.raises(InvalidQuery, match="give seconds"):
        client.wait(id_, float("nan"))


@pytest.mark.parametrize("key", ["\0", "", "\ud800", "x" * 5000, 5])
def test_a_key_of_a_bulk_operation_that_no_store_keeps_is_refused(client: Client, key: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidQuery, match="key"):
        client.start("hold", f"lane:{LANE}", reason="x", key=key)


@pytest.mark.parametrize("field", ["mode", "run_at", "start_by", "finish_by", "id"])
def test_of_bad_input_only_the_beginning_is_repeated(client: Client, field: str) -> None:
    with pytest.raises(InvalidJob, match=field) as caught:
        client.enqueue(LANE, **{field: "x" * 5000})  # type: ignore[arg-type]
    assert len(str(caught.value)) < 500
