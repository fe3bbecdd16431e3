"""A store as somebody sees it who may not see everything."""

from collections.abc import Iterator

import pytest

from penstock import Client
from penstock.api.problems import problem_of
from penstock.domain.access import ROLES, Scope, Who
from penstock.domain.causes import causes
from penstock.domain.filters import JobQuery
from penstock.domain.fingerprints import fingerprint_of
from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.domain.masking import MASK
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Succeeded
from penstock.domain.states import Effect, JobState, Verb
from penstock.empty import why_empty
from penstock.errors import Forbidden, InUse, InvalidJob, NotFound
from penstock.limited import COMMON, WHOLE, LimitedStore, limited
from penstock.ports.store import Ask, Store
from penstock.stores.memory import MemoryStore
from tests.api.conftest import memory_store

ALL = frozenset(Scope)
ADA = Who("key:ada", ALL, "ada")
BOB = Who("key:bob", ALL, "bob")
VIEWER = Who("user:vera", ROLES["viewer"])
HAND = Who("key:op", frozenset({Scope.READ, Scope.OPERATE}))
# What belongs to nodes, operators of the machine and the command line: nobody reaches it through an API.
ENGINE = {
    "claim", "claim_groups", "mark_sending", "renew", "settle", "takeover", "lapse", "resolve", "expire",
    "recall", "fold_counts", "retire", "record_ticks", "register_node", "beat", "elect", "extend_term",
    "resign", "confirm", "permit", "mark_target", "wakeups", "migrate", "push", "receive", "ack", "nack",
    "secrets", "add_secret", "show_secret", "known_key", "key_used", "user", "open_session", "session",
    "queued", "session_used", "close_session", "collect_operation", "work_operation", "fail_operation",
}  # fmt: skip


@pytest.fixture
def store() -> MemoryStore:
    store = memory_store()
    store.put_lane(lane("orders", sink="http", mode="block_on_error"), actor="test")
    return store


@pytest.fixture
def client(store: MemoryStore) -> Iterator[Client]:
    with Client(store) as client:
        yield client


def test_every_method_of_a_store_has_its_place() -> None:
    """A new one is refused to the limited until somebody decides, and this test says so."""
    methods = {
        name
        for part in Store.__mro__
        for name in vars(part)
        if not name.startswith("_") and callable(vars(part)[name])
    }
    own = {name for name in vars(LimitedStore) if not name.startswith("_")}

    assert methods - own - COMMON - WHOLE - ENGINE == set()
    assert not (own & COMMON)
    assert not (own & WHOLE)
    assert not (COMMON & WHOLE)
    assert not (ENGINE & (own | COMMON | WHOLE))


@pytest.mark.parametrize("method", [*sorted(ENGINE), *sorted(WHOLE), "something_new"])
def test_what_is_not_named_is_refused(store: MemoryStore, method: str) -> None:
    with pytest.raises(Forbidden, match="key:ada may not"):
        getattr(limited(store, ADA), method)


def test_whoever_sees_all_has_the_store_itself(store: MemoryStore) -> None:
    assert limited(store, Who("user:op", ROLES["operator"])) is store


def test_a_tenant_enqueues_as_itself(client: Client) -> None:
    ada = client.acting(ADA)
    made = ada.enqueue("orders", {"n": 1})
    also = ada.enqueue("orders", {"n": 1}, tenant="ada")

    assert client.get(made.id).live.tenant == "ada"
    assert client.get(also.id).live.tenant == "ada"
    with pytest.raises(InvalidJob, match="bound to the tenant 'ada'"):
        ada.enqueue("orders", {"n": 1}, tenant="bob")


def test_another_tenants_key_tells_nothing(client: Client) -> None:
    job = client.acting(BOB).enqueue("orders", {"card": "4242"}, key="k1")
    ada = client.acting(ADA)
    for payload in ({"card": "4242"}, {"card": "1"}):
        with pytest.raises(InvalidJob, match="is taken") as refused:
            ada.enqueue("orders", payload, key="k1")
        assert job.id not in str(refused.value)

    assert client.acting(BOB).enqueue("orders", {"card": "4242"}, key="k1").duplicate


def test_another_tenants_id_is_taken_and_nobody_is_sent_to_look_at_it(client: Client) -> None:
    theirs = client.acting(BOB).enqueue("orders", {"card": "4242"})
    ada = client.acting(ADA)
    own = ada.enqueue("orders", {"n": 1})

    new = [{"lane": "orders", "id": own.id}, {"lane": "orders", "id": theirs.id.lower()}]
    again, taken = ada.enqueue_many(new)
    assert isinstance(taken, InvalidJob)
    assert (taken.field, taken.problem) == ("id", "is taken: use another; ids are shared by all tenants")
    assert "GET" not in problem_of(taken).hint
    assert isinstance(again, InvalidJob)
    assert f"there is a job {own.id} already" in str(again)
    assert "GET /api/jobs/ID shows it" in problem_of(again).hint


def test_another_tenants_job_is_no_job(client: Client) -> None:
    theirs = client.acting(BOB).enqueue("orders", {"n": 1}).id
    nobodys = client.enqueue("orders", {"n": 2}).id
    ada = client.acting(ADA)
    mine = ada.enqueue("orders", {"n": 3}).id
    for id_ in (theirs, nobodys):
        for look in (ada.get, ada.explain, ada.timeline):
            with pytest.raises(NotFound):
                look(id_)
        with pytest.raises(NotFound):
            ada.cancel(id_, reason="x")
        with pytest.raises(NotFound):
            ada.edit(id_, reason="x", payload={"n": 4})
        with pytest.raises(NotFound):
            ada.store.edit(id_, actor="x", reason="x", payload="1")
        with pytest.raises(NotFound):
            ada.report(id_, 1, "succeeded")
        assert ada.store.payload_versions(id_) == []
        assert ada.store.timeline(id_).audit == ()
    assert [job.id for job in ada.list().jobs] == [mine]
    assert ada.list(tenant="bob").jobs == []
    done = ada.store.operate(Verb.CANCEL, [theirs, mine], actor="x", reason="x")
    assert [one.state for one in done] == [None, JobState.CANCELLED]
    assert client.get(theirs).state is JobState.PENDING


def test_a_tenant_does_not_learn_whose_job_is_in_the_way(client: Client, store: MemoryStore) -> None:
    theirs = client.acting(BOB).enqueue("orders", {"n": 1}, group="g").id
    ada = client.acting(ADA)
    mine = ada.enqueue("orders", {"n": 2}, group="g").id
    own = ada.enqueue("orders", {"n": 3}, group="g").id
    node = store.register_node("n")
    claim = store.claim_groups(Ask(lane="orders", node=node))
    assert claim is not None

    told = ada.explain(mine)

    assert told.job is None
    assert "a job of another tenant" in told.text
    assert theirs not in repr(told)
    assert client.explain(mine).job == theirs
    assert client.acting(BOB).explain(theirs).state is JobState.CLAIMED
    assert ada.explain(own).state is JobState.PENDING


def test_a_tenant_sees_what_was_done_to_lanes_and_not_to_jobs(client: Client) -> None:
    job = client.acting(BOB).enqueue("orders", {"n": 1})
    client.cancel(job.id, reason="of bob")
    entries = client.acting(ADA).store.audit_log().entries

    assert [entry.action for entry in entries] == ["lane.create"]
    assert len(client.store.audit_log().entries) == 2


def test_a_tenant_does_not_learn_of_groups_by_asking_for_one_like_them(store: MemoryStore) -> None:
    query = JobQuery(group="a-secret-grup")
    store.enqueue([NewJob(lane="orders", group="a-secret-group", mode=Mode.BLOCK_ON_ERROR, tenant="else")])

    assert "did you mean a-secret-group?" in str(why_empty(store, query))
    assert "did you mean" not in str(why_empty(limited(store, ADA), query))


def test_what_jobs_carry_is_hidden(client: Client) -> None:
    id_ = client.enqueue("orders", {"card": "4242"}, headers={"X-Token": "s3cret"}, group="g").id
    viewer = client.acting(VIEWER)
    job = viewer.get(id_)

    assert job.hidden
    assert "4242" not in repr(job)
    assert "s3cret" not in repr(job)
    assert "4242" not in repr(viewer.list(payloads=True))
    assert "4242" not in repr(viewer.store.standing(id_))
    with pytest.raises(Forbidden, match="scope payload"):
        viewer.store.payload_versions(id_)
    assert viewer.counts() == client.counts()
    client.edit(id_, payload={"card": "1111"}, reason="r")
    for seen in (client, viewer):
        told = repr(seen.store.timeline(id_)) + repr(seen.store.audit_log())
        assert ("sha256:" in told) is (seen is client)
        assert "revision" in told
    viewer.close()
    assert "1111" in repr(client.get(id_))


def test_whoever_may_not_see_what_a_job_carries_cannot_have_it_sent_elsewhere(client: Client) -> None:
    id_ = client.enqueue("orders", {"card": "4242"}).id
    operator = client.acting(HAND)

    with pytest.raises(Forbidden, match="scope payload"):
        operator.edit(id_, target="http://127.0.0.1/mine", reason="r")
    with pytest.raises(Forbidden, match="scope payload"):
        operator.start("edit", "state:pending", change={"target": "http://127.0.0.1/mine"}, reason="r")
    assert operator.edit(id_, payload={"card": "0000"}, reason="r").effect is Effect.NOW


@pytest.fixture
def answered(client: Client, store: MemoryStore) -> str:
    """Return a job whose target said something; beside it is one with the id of a message."""
    made = [client.enqueue("orders", {}, mode="immediate") for _ in range(2)]
    claim = store.claim(Ask(lane="orders", node=store.register_node("n")))
    assert claim is not None
    receipts = ("200 card 4242-1111 accepted", "m-4242")
    said = {one.job.arrival: Succeeded(receipt=said) for one, said in zip(claim.jobs, receipts, strict=True)}
    store.settle(claim, said)
    return made[0].id


@pytest.mark.parametrize(
    "line",
    ["receipt~4242-1", 'receipt:"200 card 4242-1111 accepted"', 'receipt!="200 card"', "receipt:m-4242,200"],
)
def test_what_a_target_answered_is_not_told_by_looking_for_it(
    client: Client, answered: str, line: str
) -> None:
    """One question after the other would read all of it; a bare number would tell that nothing follows it."""
    viewer = client.acting(VIEWER)
    assert viewer.get(answered).live.receipt == "200"
    assert client.list(filter=line).jobs != []
    with pytest.raises(Forbidden, match="look for receipt: it needs the scope payload"):
        viewer.list(filter=line)
    with pytest.raises(Forbidden, match="scope payload"):
        client.acting(HAND).start("replay", f"state:succeeded {line}", reason="r")


@pytest.mark.usefixtures("answered")
def test_the_id_of_a_message_is_shown_and_found(client: Client) -> None:
    viewer = client.acting(VIEWER)
    assert [job.live.receipt for job in viewer.list(filter="receipt:m-4242").jobs] == ["m-4242"]
    assert [job.live.receipt for job in viewer.list(filter="receipt!=m-4242").jobs] == ["200"]
    made = client.start("hold", "receipt:m-4242", reason="r")
    assert viewer.operation(made.id).filter == "receipt:m-4242"


def test_dead_letters_are_found_by_the_cause_that_is_shown(client: Client, store: MemoryStore) -> None:
    """Whoever sees no answers has causes of his own, which everybody can look for; a guess tells nothing."""
    for _ in range(3):
        client.enqueue("orders", {}, mode="immediate")
    claim = store.claim(Ask(lane="orders", node=store.register_node("n")))
    assert claim is not None
    errors = ("HTTP 422: card of Ann declined", "HTTP 422: card of Bob declined", "HTTP 404: no Bob")
    died = {one.job.arrival: Dead("permanent", error) for one, error in zip(claim.jobs, errors, strict=True)}
    store.settle(claim, died)
    hand = client.acting(HAND)

    found = causes(hand.list(state=JobState.DEAD).jobs)

    assert [(cause.error, cause.jobs) for cause in found] == [("HTTP 422", 2), ("HTTP 404", 1)]
    for cause in found:
        line = f"fingerprint:{cause.fingerprint}"
        assert {job.error for job in hand.list(filter=line).jobs} == {cause.error}
        assert len(hand.list(filter=line).jobs) == len(client.list(filter=line).jobs) == cause.jobs
        assert len(hand.list(filter=f"fingerprint!={cause.fingerprint}").jobs) == 3 - cause.jobs
        assert hand.preview("retry", line).matched == cause.jobs
        assert hand.operation(hand.start("retry", line, reason="r").id).filter == line
    guess = fingerprint_of("permanent", errors[0])
    assert len(client.list(filter=f"fingerprint:{guess}").jobs) == 1
    for line in (f"fingerprint:{guess}", f"fingerprint:{found[0].fingerprint},{guess}", "fingerprint~k"):
        with pytest.raises(Forbidden, match=r"look for fingerprint: it needs .* except those that begin"):
            hand.list(filter=line)


@pytest.mark.parametrize("line", ["payload.card:4242", "receipt~4242", 'receipt:"200 card 4242"'])
def test_filters_that_look_into_jobs_are_hidden_with_what_jobs_carry(client: Client, line: str) -> None:
    viewer = client.acting(VIEWER)
    secret = client.start("hold", line, reason="r")
    plain = client.start("hold", "lane:orders", reason="r")

    assert [one.filter for one in viewer.operations().operations] == [plain.filter, MASK]
    assert viewer.operation(secret.id).filter == MASK
    assert "4242" not in repr(viewer.store.audit_log())
    assert "4242" in repr(client.store.audit_log())
    with pytest.raises(InUse, match="another operation"):
        client.acting(ADA).start(
            "hold", client.start("hold", "lane:orders", reason="r", key="k").filter, reason="r", key="k"
        )
