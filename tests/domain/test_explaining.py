"""Every gate that may hold a job, and the order in which they are named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.breakers import Target
from penstock.domain.explaining import explain
from penstock.domain.gates import Explanation, Facts, Gate, stamp
from penstock.domain.job import Attempt, Audit, AuditEntry, Context, Job, Live
from penstock.domain.lanes import Lane
from penstock.domain.lanes import lane as lane_of
from penstock.domain.notes import Said
from penstock.domain.ordering import Mode
from penstock.domain.pauses import Pause
from penstock.domain.pools import Pool
from penstock.domain.pools import pool as pool_of
from penstock.domain.standing import Neighbour, Standing
from penstock.domain.states import TERMINAL, JobState, Verb
from penstock.domain.targets import paused_name, target_of
from penstock.domain.targets import pool_of as counts_against
from penstock.errors import InvalidQuery

S = JobState
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
LATER, BEFORE = NOW + HOUR, NOW - HOUR
ASKS = " recovery asks what became of it"
URL = "https://Example.com:8443/hook"
TARGET = "https://example.com:8443"
LIMIT_OF_GROUPS = "lane/orders/groups"
LANE = lane_of("orders", sink="http", target=URL, pool="web")
POOL = pool_of("web", max_in_flight=50, key="tenant")


def job(state: JobState = S.PENDING, *, error: str | None = None, **fields: Any) -> Job:  # noqa: ANN401
    said = {"due_at": BEFORE, "tenant": "acme", "grp": "A-1", "mode": Mode.BLOCK_ON_ERROR, **fields}
    live = Live(arrival=7, lane=1, keep=7, state=state, ord=99, **said)
    context = Context(
        id="01K", message_group="A-1", sequence=99, run_at=BEFORE, created_at=BEFORE, payload="1",
        headers=None, target=None, pool=None, key=None, finish_by=None, entity=None, version=None, event=None,
        correlation=None,
    )  # fmt: skip
    ended = BEFORE if state in TERMINAL else None
    return Job("01K", "orders", state, Mode.BLOCK_ON_ERROR, live, context, finished_at=ended, error=error)


def audit(action: str, reason: str | None = "because", *, actor: str = "ops", at: datetime = BEFORE) -> Audit:
    return Audit(at, 7, 1, actor, action, None, None, reason)


def attempt(outcome: str, error: str | None, *, due_at: datetime | None, at: datetime = BEFORE) -> Attempt:
    return Attempt(
        arrival=7, keep=7, attempt=1, send=1, epoch=1, node=1, claimed_at=None, ended_at=at, outcome=outcome,
        error=error, due_at=due_at,
    )  # fmt: skip


def facts(what: Job | None = None, *, standing: dict[str, Any] | None = None, **known: Any) -> Facts:  # noqa: ANN401
    """A job that nothing holds, in a lane that a node serves, but for what is said."""
    stands = Standing(NOW, what or job(), **(standing or {}))
    return Facts(standing=stands, **{"lane": LANE, "pool": POOL, "nodes": [Said()], **known})


def paused(row: Any, *, until: datetime | None = None) -> Any:  # noqa: ANN401
    return replace(row, paused=True, paused_by="ops", pause_reason="their API is down", paused_until=until)


def test_a_job_that_nothing_holds_goes_with_the_next_pass() -> None:
    assert explain(facts()) == Explanation(
        S.PENDING, Gate.DUE, "nothing holds it: it goes with the next pass", since=BEFORE, eta=NOW
    )


@pytest.mark.parametrize(("turn", "waited", "eta"), [(0, 60, NOW), (None, 5, NOW), (None, 6, None)])
def test_no_estimate_is_given_to_a_job_that_waits_while_others_go(
    turn: int | None, waited: int, eta: datetime | None
) -> None:
    due = NOW - timedelta(seconds=waited)
    found = explain(facts(job(mode=Mode.IMMEDIATE, due_at=due), standing={"turn": turn}))

    assert (found.gate, found.since, found.eta) == (Gate.DUE, due, eta)
    assert ("others of its lane go before it" in found.text) == (eta is None)


# -- where it is
@pytest.mark.parametrize(
    ("what", "last", "text", "by"),
    [
        (job(S.SUCCEEDED), None, "succeeded at 2026-03-01T11:00:00Z", None),
        (job(S.EXPIRED), None, "expired at 2026-03-01T11:00:00Z", None),
        (
            job(S.EXPIRED),
            audit("expire", "start_by has passed", actor="penstock"),
            "expired at 2026-03-01T11:00:00Z (start_by has passed)",
            None,
        ),
        (job(S.CANCELLED), audit("cancel"), "was cancelled at 2026-03-01T11:00:00Z by ops (because)", "ops"),
        (job(S.SKIPPED), audit("skip", None), "was skipped at 2026-03-01T11:00:00Z by ops", "ops"),
        (job(S.SKIPPED), None, "was skipped at 2026-03-01T11:00:00Z", None),
        (
            job(S.DEAD, error="500 from /hook", reason="exhausted"),
            None,
            "is dead (exhausted: 500 from /hook): retry, skip or cancel it",
            None,
        ),
        (
            job(S.DEAD, reason="stopped"),
            audit("settle_dead"),
            "was marked as dead at 2026-03-01T11:00:00Z by ops (because): retry, skip or cancel it",
            "ops",
        ),
        (
            job(S.SUCCEEDED),
            audit("settle_succeeded", None),
            "was marked as succeeded at 2026-03-01T11:00:00Z by ops",
            "ops",
        ),
        (job(S.SUCCEEDED), audit("retry"), "succeeded at 2026-03-01T11:00:00Z", None),
        (
            job(S.DEAD, reason="poison", error="poison"),
            None,
            "is dead (poison): retry, skip or cancel it",
            None,
        ),
        (job(S.DEAD, error="x" * 300), None, f"is dead ({'x' * 199}…): retry, skip or cancel it", None),
    ],
)
def test_a_job_that_ended_says_how(what: Job, last: Audit | None, text: str, by: str | None) -> None:
    known = facts(what, standing={"last": last}, store_pause=Pause("ops", "", BEFORE))

    assert explain(known) == Explanation(what.state, Gate.FINAL, text, since=BEFORE, by=by)


def test_a_job_that_ended_at_a_time_nobody_knows_says_how() -> None:
    assert explain(facts(job(S.SUCCEEDED)._replace(finished_at=None))).text == "has succeeded"


def test_a_held_job_says_who_holds_it() -> None:
    found = explain(facts(job(S.HELD, reason="operator"), standing={"last": audit("hold")}))

    text = "is held by ops (because): release, skip or cancel it"
    assert found == Explanation(S.HELD, Gate.HELD, text, since=BEFORE, by="ops")
    assert explain(facts(job(S.HELD))).text == "is held: release, skip or cancel it"


@pytest.mark.parametrize("reason", ["operator", "outcome_unknown"])
def test_a_held_job_says_when_it_is_too_late_to_release_it(reason: str) -> None:
    found = explain(facts(job(S.HELD, reason=reason, start_by=LATER)))

    assert found.text.endswith(f"; released after {stamp(LATER)} it expires")


def test_a_held_job_says_until_when_its_lane_allows_it_to_be_released() -> None:
    strict = lane_of("orders", misfire="skip_after(1h)")
    found = explain(facts(job(S.HELD, reason="operator", due_at=NOW, start_by=LATER + HOUR), lane=strict))

    assert found.text.endswith(f"; released after {stamp(LATER)} it expires")


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        (attempt("lapsed", None, due_at=NOW), "; what became of send 1 before that nobody knows"),
        (attempt("failed", "500 from /hook", due_at=NOW), "; send 1 before that failed (500 from /hook)"),
        (attempt("not_started", None, due_at=NOW), ""),
        (None, ""),
    ],
)
def test_a_job_that_expired_says_what_became_of_the_send_before(tried: Attempt | None, words: str) -> None:
    last = audit("expire", "start_by has passed", actor="penstock")
    found = explain(facts(job(S.EXPIRED), standing={"last": last, "tried": tried}))

    assert found.text == f"expired at 2026-03-01T11:00:00Z (start_by has passed){words}"


def test_a_job_that_was_sent_before_expires_if_it_has_not_gone_again() -> None:
    tried = attempt("lapsed", None, due_at=NOW)
    found = explain(facts(job(due_at=NOW + SECOND, start_by=LATER), standing={"tried": tried}))

    assert found.text.endswith(f"; it expires if it has not gone again by {stamp(LATER)}")


def test_a_job_is_held_because_its_context_is_missing() -> None:
    last = audit("hold", "context_missing", actor="node")
    found = explain(facts(job(S.HELD, reason="context_missing"), standing={"last": last}))

    assert found.text == "is held because what it should send is missing: cancel it, and enqueue it again"
    assert (found.since, found.by) == (BEFORE, "node")


@pytest.mark.parametrize("tried", [attempt("lapsed", None, due_at=NOW), None])
def test_a_job_is_held_because_its_outcome_is_unknown(tried: Attempt | None) -> None:
    found = explain(facts(job(S.HELD, reason="outcome_unknown", send=3), standing={"tried": tried}))

    assert "nobody knows what became of send 3: settle it" in found.text
    assert (found.since, found.by) == (BEFORE if tried else None, None)


def test_a_job_whose_outcome_is_unknown_says_what_came_instead_of_an_answer() -> None:
    tried = attempt("lapsed", "no answer within 3 s", due_at=NOW)
    found = explain(facts(job(S.HELD, reason="outcome_unknown", send=3), standing={"tried": tried}))

    assert "what became of send 3 (no answer within 3 s): settle it" in found.text


def test_a_waiting_step_waits_for_its_parent() -> None:
    assert explain(facts(job(S.WAITING)))[1:3] == (Gate.PARENT, "waits until its parent step lets it go")


def test_a_claimed_job_says_who_has_it() -> None:
    held = {"holder": "host-1 (node 7)", "lease_until": LATER}
    found = explain(facts(job(S.CLAIMED, claimed_at=BEFORE, due_at=NOW + SECOND), standing=held))

    text = "is claimed by host-1 (node 7) until 2026-03-01T13:00:00Z, which sends it at 2026-03-01T12:00:01Z"
    assert found == Explanation(
        S.CLAIMED, Gate.LEASE, text, BEFORE, LATER, "host-1 (node 7)", eta=NOW + SECOND
    )


def test_a_claimed_job_that_is_due_goes_now_and_nobody_makes_up_a_time_for_it() -> None:
    found = explain(facts(job(S.CLAIMED), standing={"holder": "node 7"}))

    assert found.text == (
        "is claimed by node 7, which sends it now, or as soon as the limits of its pool let it"
    )
    assert found.eta is None
    assert explain(facts(job(S.CLAIMED), standing={"holder": "node 7"}, pool=None)).text == (
        "is claimed by node 7, which sends it now"
    )


def test_a_claimed_job_of_a_lane_with_jitter_says_by_when_it_goes() -> None:
    spread = {"lane": replace(LANE, settings={**LANE.settings, "jitter": "3m"}), "pool": None}
    has = {"standing": {"holder": "node 7"}, **spread}
    early, due = job(S.CLAIMED, due_at=NOW + SECOND), job(S.CLAIMED, due_at=NOW - SECOND)
    soon = explain(facts(early, **has))
    assert "which sends it between 2026-03-01T12:00:01Z and 2026-03-01T12:03:01Z (jitter)" in soon.text
    assert soon.eta == NOW + 181 * SECOND
    later = explain(facts(due, **has))
    assert "which sends it by 2026-03-01T12:02:59Z (jitter)" in later.text
    assert later.eta == NOW + 179 * SECOND
    limited = explain(facts(due, **{**has, "pool": POOL}))
    assert (limited.text.endswith("let it"), limited.eta) == (True, None)
    gone = explain(facts(job(S.CLAIMED, due_at=NOW - 180 * SECOND), **has))
    assert (gone.text, gone.eta) == ("is claimed by node 7, which sends it now", None)
    ends = explain(facts(job(S.CLAIMED, due_at=NOW + SECOND, start_by=NOW + 2 * SECOND), **has))
    assert ends.eta == NOW + SECOND


def test_a_job_whose_call_is_under_way_is_being_sent() -> None:
    one = job(S.CLAIMED, claimed_at=BEFORE - SECOND, due_at=BEFORE - SECOND)
    held = {"holder": "node 7", "lease_until": LATER}
    nodes = [Said(who="node 8"), Said(calls={one.id: BEFORE}, who="node 7")]
    found = explain(facts(one, standing=held, nodes=nodes))

    assert found == Explanation(
        S.CLAIMED,
        Gate.LEASE,
        "is being sent by node 7 since 2026-03-01T11:00:00Z",
        since=BEFORE,
        until=LATER,
        by="node 7",
    )
    elsewhere = [Said(calls={one.id: BEFORE}, who="node 8")]
    assert "being sent" not in explain(facts(one, standing=held, nodes=elsewhere)).text


def test_a_claimed_job_that_waits_for_a_slot_of_its_pool_names_the_pool() -> None:
    one = job(S.CLAIMED)
    nodes = [Said(waits={one.id: BEFORE}, who="node 7")]
    found = explain(facts(one, standing={"holder": "node 7"}, nodes=nodes))

    assert found.text == (
        'is claimed by node 7, but the limit of pool "web/acme" lets no more jobs go for now'
        " (max_in_flight = 50)"
    )
    assert (found.gate, found.eta) == (Gate.LEASE, None)


def test_a_claimed_job_may_wait_for_a_limit_there() -> None:
    nodes = [Said(limits={"pool/web/acme": NOW + SECOND})]
    found = explain(facts(job(S.CLAIMED), standing={"holder": "node 7"}, nodes=nodes))

    assert found.gate is Gate.LEASE
    assert found.eta == NOW + SECOND
    assert 'is claimed by node 7, but the limit of pool "web/acme" lets no more jobs go' in found.text
    nodes[0] = replace(nodes[0], queues={"pool/web/acme": 2})
    assert explain(facts(job(S.CLAIMED), standing={"holder": "node 7"}, nodes=nodes)).eta is None


def test_a_claimed_job_that_is_no_longer_wanted_is_not_sent() -> None:
    held = {"holder": "node 7", "request": Verb.HOLD, "asked_by": "ops", "asked_why": "wait"}
    found = explain(facts(job(S.CLAIMED, due_at=LATER), standing=held))
    when = "at 2026-03-01T13:00:00Z, unless its call has begun; ops asked to hold it (wait)"
    assert found[1:3] == (Gate.LEASE, f"is claimed by node 7, which lets it go unsent {when}")
    assert found.eta is None

    found = explain(facts(job(S.CLAIMED), standing=held))
    assert "which lets it go unsent now, unless its call has begun; ops asked" in found.text
    calls = [Said(calls={"01K": BEFORE}, who="node 7")]
    found = explain(facts(job(S.CLAIMED), standing=held, nodes=calls))
    assert found.text == "is being sent by node 7 since 2026-03-01T11:00:00Z; ops asked to hold it (wait)"


def test_a_claimed_job_names_the_target_that_asked_to_be_left_alone() -> None:
    tried = attempt("throttled", "429 Too Many Requests", due_at=LATER)
    slow = Target(TARGET, slow_until=NOW + 2 * HOUR)
    found = explain(
        facts(job(S.CLAIMED, due_at=LATER), standing={"holder": "node 7", "tried": tried}, target=slow)
    )

    again = "which sends it at 2026-03-01T13:00:00Z (throttled: 429 Too Many Requests)"
    alone = f"{TARGET} asked to be left alone until 2026-03-01T14:00:00Z"
    assert found.text == f"is claimed by node 7, {again}; {alone}"
    assert found.eta == NOW + 2 * HOUR

    found = explain(facts(job(S.CLAIMED), standing={"holder": "node 7"}, target=slow))
    assert (found.text, found.eta) == (f"is claimed by node 7, but {alone}", NOW + 2 * HOUR)


def test_a_claimed_job_that_a_limit_put_back_has_no_estimate() -> None:
    last = audit("return", "limit of pool/web/acme", actor="node")
    found = explain(facts(job(S.CLAIMED, due_at=LATER), standing={"holder": "node 7", "last": last}))

    assert "which tries it again at 2026-03-01T13:00:00Z (limit of pool/web/acme)" in found.text
    assert found.eta is None


def test_a_claim_that_ran_out_waits_for_recovery_and_says_what_was_asked() -> None:
    held = {"holder": "node 7", "lease_until": BEFORE, "request": Verb.CANCEL, "asked_by": "ops"}
    held["asked_why"] = "customer left"
    found = explain(facts(job(S.CLAIMED), standing=held))

    assert found.text == (
        "was claimed by node 7, whose lease ran out at 2026-03-01T11:00:00Z: recovery takes it over;"
        " ops asked to cancel it (customer left)"
    )
    assert found.eta is None


@pytest.mark.parametrize(
    ("what", "text", "since"),
    [
        (
            job(S.DISPATCHED, sent_at=BEFORE, deadline=LATER, send=2),
            "was sent as number 2; its executor must report by 2026-03-01T13:00:00Z",
            BEFORE,
        ),
        (
            job(S.RUNNING, sent_at=BEFORE - HOUR, started_at=BEFORE, deadline=NOW),
            "is at work; its executor must be heard of by 2026-03-01T12:00:00Z: it did not," + ASKS,
            BEFORE,
        ),
        (job(S.RUNNING), "is at work; its executor must be heard of", None),
    ],
)
def test_a_job_that_is_out_waits_for_its_executor(what: Job, text: str, since: datetime | None) -> None:
    found = explain(facts(what, standing={"holder": "node 7"}))

    assert found == Explanation(what.state, Gate.LEASE, text, since, what.live.deadline, "node 7")


# -- what is stopped
def test_a_store_is_paused_for_a_time_or_until_told_otherwise() -> None:
    found = explain(facts(store_pause=Pause("ops", "upgrade", BEFORE, LATER), lane=paused(LANE)))

    paused_by = "the whole store is paused by ops (upgrade)"
    text = f"{paused_by} until 2026-03-01T13:00:00Z: penstock resume-all lets it go"
    assert found == Explanation(S.PENDING, Gate.STORE, text, BEFORE, LATER, "ops", eta=LATER)
    assert explain(facts(store_pause=Pause("ops", "", BEFORE))).eta is None
    assert explain(facts(store_pause=Pause("ops", "", BEFORE, BEFORE))).gate is Gate.DUE


def entry(after: str) -> AuditEntry:
    return AuditEntry(1, BEFORE, "orders", None, "ann", "lane.update", None, after, None)


def test_a_lane_is_disabled() -> None:
    lane = lane_of("orders", enabled=False)
    found = explain(facts(lane=lane, changed=entry('{"enabled": false}')))

    text = 'lane "orders" is disabled by ann: penstock lanes set orders enabled=true lets it go'
    assert found == Explanation(S.PENDING, Gate.LANE, text, since=BEFORE, by="ann")
    assert explain(facts(lane=lane)).text.startswith('lane "orders" is disabled: penstock')


def test_a_lane_or_its_pool_is_paused() -> None:
    found = explain(facts(lane=paused(LANE, until=LATER), changed=entry('{"paused": true}')))
    text = (
        'lane "orders" is paused by ops (their API is down) until 2026-03-01T13:00:00Z:'
        " penstock lanes resume orders lets it go"
    )
    assert found == Explanation(S.PENDING, Gate.LANE, text, BEFORE, LATER, "ops", eta=LATER)

    found = explain(facts(pool=paused(POOL)))
    text = 'pool "web" is paused by ops (their API is down): penstock pools resume web lets it go'
    assert found == Explanation(S.PENDING, Gate.POOL, text, by="ops")
    assert explain(facts(lane=paused(LANE, until=NOW), pool=None)).gate is Gate.DUE


def test_a_pause_that_ends_before_the_job_is_due_is_not_its_last_gate() -> None:
    found = explain(facts(job(due_at=NOW + 2 * HOUR), lane=paused(LANE, until=LATER)))

    assert (found.until, found.eta) == (LATER, NOW + 2 * HOUR)


def test_a_lane_that_was_deleted_holds_what_is_left() -> None:
    assert explain(facts(lane=None)).text == 'lane "orders" was deleted: cancel the job'
    assert facts(lane=None).limits == {}


# -- its group
def test_a_paused_group_says_who_paused_it() -> None:
    found = explain(facts(standing={"group_paused": True, "group_pause": audit("pause_group")}))

    go = "penstock groups resume orders A-1 lets it go"
    text = f'group "A-1" is paused by ops (because): {go}'
    assert found == Explanation(S.PENDING, Gate.GROUP, text, BEFORE, by="ops")
    assert explain(facts(standing={"group_paused": True})).text == f'group "A-1" is paused: {go}'


def test_a_group_that_is_paused_for_a_time_says_until_when() -> None:
    found = explain(facts(standing={"group_paused": True, "group_until": LATER}))

    assert found.until == LATER
    assert "is paused until 2" in found.text


@pytest.mark.parametrize(
    ("ahead", "rest", "until"),
    [
        (
            Neighbour("01J", S.DEAD, 1, BEFORE, "exhausted", "500 from /hook"),
            "which is dead (exhausted: 500 from /hook): retry, skip or cancel it",
            None,
        ),
        (
            Neighbour("01J", S.HELD, 1, BEFORE, "operator"),
            "which is held (operator): release, skip or cancel it",
            None,
        ),
        (
            Neighbour("01J", S.HELD, 1, BEFORE, "outcome_unknown"),
            "which is held (outcome_unknown): settle it if it was done, else release, skip or cancel it",
            None,
        ),
        (Neighbour("01J", S.RUNNING, 1, BEFORE), "which is running", None),
        (Neighbour("01J", S.PENDING, 1, BEFORE), "which goes before it", None),
        (
            Neighbour("01J", S.PENDING, 1, LATER, None, "no route"),
            "which is before it and due at 2026-03-01T13:00:00Z (no route)",
            LATER,
        ),
    ],
)
def test_a_job_waits_for_another_of_its_group(ahead: Neighbour, rest: str, until: datetime | None) -> None:
    found = explain(facts(job(due_at=LATER), standing={"ahead": ahead}))

    text = f"waits for job 01J of group A-1, {rest}"
    assert found == Explanation(S.PENDING, Gate.GROUP, text, since=BEFORE, until=until, job="01J")


def test_a_job_waits_for_another_since_that_is_in_its_way() -> None:
    ahead = Neighbour("01J", S.DEAD, 1, BEFORE, since=NOW - SECOND)

    assert explain(facts(standing={"ahead": ahead})).since == NOW - SECOND


def test_which_job_it_waits_for_may_be_nobodys_business() -> None:
    found = explain(facts(standing={"ahead": Neighbour("", S.RUNNING, 1, BEFORE)}))

    assert found.text == "waits for a job of another tenant of group A-1, which is running"
    for state, verb in ((S.DEAD, "retry"), (S.HELD, "release")):
        found = explain(facts(standing={"ahead": Neighbour("", state, 1, BEFORE)}))
        assert found.text.endswith(f"which is {state.label}: ask an operator to {verb}, skip or cancel it")
    assert found.job is None


# -- its time
def test_a_job_is_due_later() -> None:
    found = explain(facts(job(due_at=LATER)))

    text = "is due at 2026-03-01T13:00:00Z"
    assert found == Explanation(S.PENDING, Gate.DUE, text, until=LATER, eta=LATER)


def test_a_failed_job_waits_for_its_next_attempt() -> None:
    tried = attempt("failed", "502 Bad Gateway", due_at=LATER)
    found = explain(
        facts(job(due_at=LATER), standing={"tried": tried, "last": audit("return", at=BEFORE - HOUR)})
    )

    assert found.text == "waits for its next attempt at 2026-03-01T13:00:00Z (failed: 502 Bad Gateway)"
    moved = explain(facts(job(due_at=LATER), standing={"tried": tried._replace(due_at=NOW)}))
    assert moved.text == "is due at 2026-03-01T13:00:00Z"
    slow = explain(
        facts(job(due_at=LATER), standing={"tried": tried}, target=Target(TARGET, slow_until=LATER))
    )
    assert slow.text.endswith(f"; {TARGET} asked to be left alone until 2026-03-01T13:00:00Z")


def test_a_job_that_has_to_go_by_a_time_says_so() -> None:
    found = explain(facts(job(due_at=NOW + SECOND, start_by=LATER)))
    assert (
        found.text == "is due at 2026-03-01T12:00:01Z; it expires if it has not gone by 2026-03-01T13:00:00Z"
    )

    found = explain(facts(job(due_at=BEFORE, start_by=BEFORE), lane=paused(LANE)))
    text = "had to go by 2026-03-01T11:00:00Z and did not: housekeeping ends it as expired"
    assert found == Explanation(S.PENDING, Gate.DUE, text, since=BEFORE)
    assert "expires" not in explain(facts(job(S.CLAIMED, start_by=LATER))).text


# -- where it goes
OPEN = Target(TARGET, "open", 20, BEFORE, LATER)


def test_a_target_whose_breaker_is_open_is_left_alone() -> None:
    found = explain(facts(target=OPEN))

    text = f"{TARGET} is left alone until 2026-03-01T13:00:00Z: 20 calls in a row failed"
    assert found == Explanation(S.PENDING, Gate.BREAKER, text, since=BEFORE, until=LATER, eta=LATER)


def test_a_target_that_asked_for_it_is_left_alone() -> None:
    found = explain(facts(target=Target(TARGET, slow_until=LATER)))

    assert found[1:3] == (Gate.BREAKER, f"{TARGET} asked to be left alone until 2026-03-01T13:00:00Z")


def test_a_paused_target_says_who_paused_it_and_how_it_goes_on() -> None:
    target = OPEN._replace(pause=Pause("ann", "they move", BEFORE, LATER))
    found = explain(facts(target=target))

    text = f"{TARGET} is paused by ann (they move) until 2026-03-01T13:00:00Z"
    resume = f"penstock targets resume {TARGET} lets it go"
    assert found == Explanation(
        S.PENDING, Gate.BREAKER, f"{text}: {resume}", since=BEFORE, until=LATER, by="ann", eta=LATER
    )
    over = target._replace(pause=Pause("ann", "they move", BEFORE, BEFORE))
    assert "calls in a row failed" in explain(facts(target=over)).text


def test_a_target_that_is_tried_again_takes_one_at_a_time() -> None:
    found = explain(facts(target=Target(TARGET, "trial", 20, BEFORE)))

    assert found.text == f"{TARGET} is tried with one call at a time after 20 failed in a row"
    assert (found.until, found.eta) == (None, None)
    assert explain(facts(target=Target(TARGET, "closed", slow_until=BEFORE))).gate is Gate.DUE


def test_a_job_that_a_breaker_put_back_names_the_breaker() -> None:
    last = audit("return", f"{TARGET} is left alone", actor="node")
    due = NOW + 2 * HOUR
    found = explain(facts(job(due_at=due), standing={"last": last}, target=OPEN))
    assert (found.gate, found.until, found.eta) == (Gate.BREAKER, LATER, due)

    for target in (None, Target(TARGET)):
        found = explain(facts(job(due_at=due), standing={"last": last}, target=target))
        text = f"was put back until 2026-03-01T14:00:00Z ({TARGET} is left alone)"
        assert found[1:3] == (Gate.DUE, text)


# -- its limits
@pytest.mark.parametrize(
    ("pool", "name", "gate"),
    [
        (POOL, "pool/web/acme", Gate.KEY),
        (pool_of("web"), "pool/web", Gate.POOL),
        (pool_of("web", key="group"), "pool/web/orders/A-1", Gate.KEY),
        (pool_of("web", key="target"), f"pool/web/{TARGET}", Gate.KEY),
        (None, "lane/orders", Gate.LANE),
        (POOL, "lane/orders", Gate.LANE),
    ],
)
def test_a_limit_names_what_it_is_of_and_when_the_next_token_comes(
    pool: Pool | None, name: str, gate: Gate
) -> None:
    soon = {"others": NOW, name: NOW + SECOND}
    nodes = [Said(), Said(limits={name: None}), Said(limits=soon), Said(frozenset({"x"}), limits={name: NOW})]
    found = explain(facts(pool=pool, nodes=nodes))

    scope, _, rest = name.partition("/")
    text = (
        f'the limit of {scope} "{rest}" lets no more jobs go for now; the next token comes at'
        " 2026-03-01T12:00:01Z"
    )
    assert found == Explanation(S.PENDING, gate, text, until=NOW + SECOND)
    assert explain(facts(pool=pool, nodes=[Said(limits={name: BEFORE})])).until is None


def test_jobs_without_a_tenant_are_one_key_of_their_pool() -> None:
    nobody = facts(job(tenant=None, grp=None)._replace(context=None), nodes=[Said(limits={"pool/web": None})])
    found = explain(nobody)

    text = 'the limit of pool "web" lets no more jobs go for now (max_in_flight = 50)'
    assert found[1:3] == (Gate.POOL, text)
    assert (found.until, found.eta) == (None, None)


def test_a_job_that_a_limit_put_back_names_the_limit() -> None:
    last = audit("return", "limit of pool/web/acme", actor="node")
    found = explain(facts(job(due_at=LATER), standing={"last": last}))
    text = 'the limit of pool "web/acme" lets no more jobs go for now (max_in_flight = 50)'
    again = f"{text}: it is tried again at 2026-03-01T13:00:00Z"
    assert found == Explanation(S.PENDING, Gate.KEY, again, until=LATER)

    found = explain(facts(standing={"last": last}))
    assert found[1:3] == (Gate.KEY, text)
    for standing in (job(), job(due_at=LATER)):
        assert explain(facts(standing, standing={"last": last}, nodes=[])).gate is Gate.LANE
    assert explain(facts(standing={"last": audit("return", None)})).gate is Gate.DUE


def test_a_job_that_a_sink_did_not_take_says_why_also_while_a_node_has_it_again() -> None:
    last = audit("return", 'sink billing: there is no queue "nowhere": create it', actor="node")
    why = '(sink billing: there is no queue "nowhere": create it)'

    waits = explain(facts(job(due_at=LATER), standing={"last": last}))
    assert waits[1:3] == (Gate.SINK, f"was put back until 2026-03-01T13:00:00Z {why}")

    claimed = job(S.CLAIMED, due_at=LATER, claimed_at=NOW)
    text = explain(facts(claimed, standing={"last": last, "holder": "n1"})).text
    assert text == f"is claimed by n1, which tries it again at 2026-03-01T13:00:00Z {why}"


def test_a_limit_that_is_full_names_its_setting() -> None:
    lane = lane_of("orders", max_in_flight=3, max_groups=2, rate="5/s", batch_size=4)
    slots, groups = (
        Said(limits={name: None}, full=frozenset({name})) for name in ("lane/orders", LIMIT_OF_GROUPS)
    )
    found = explain(facts(lane=lane, nodes=[slots]))
    text = 'the limit of lane "orders" lets no more jobs go for now'
    assert found == Explanation(S.PENDING, Gate.LANE, f"{text} (max_in_flight = 3)")

    found = explain(facts(lane=lane, nodes=[groups]))
    assert found == Explanation(S.PENDING, Gate.LANE, f"{text} (max_groups = 2)")
    loose = job(mode=Mode.IMMEDIATE, grp=None)
    assert explain(facts(loose, lane=lane, nodes=[groups])).gate is Gate.DUE

    found = explain(facts(lane=lane, nodes=[Said(limits={"lane/orders": None})]))
    assert found.text == f"{text} (rate = 5/s)"
    both = explain(facts(lane=lane, nodes=[slots, Said(limits={"lane/orders": None})]))
    assert both.text == f"{text} (rate = 5/s)"
    last = audit("return", "limit of lane/orders", actor="node")
    found = explain(facts(lane=lane, standing={"last": last}, nodes=[Said()]))
    assert found.text == f"{text} (rate = 5/s, max_in_flight = 3)"


def test_nodes_that_have_their_hands_full_claim_no_more() -> None:
    busy = Said(crowded=frozenset({"orders"}))
    found = explain(facts(lane=lane_of("orders", batch_size=4), nodes=[busy, busy]))

    text = (
        'every node of lane "orders" has twice its batch in hand (batch_size = 4) and claims no more for now'
    )
    assert found == Explanation(S.PENDING, Gate.LANE, text)
    assert explain(facts(nodes=[busy, Said()])).gate is Gate.DUE
    assert "twice" not in explain(facts(job(S.CLAIMED), nodes=[busy])).text


def test_a_job_in_the_queue_of_its_lanes_rate_goes_in_its_turn() -> None:
    lane = lane_of("orders", rate="2/h")
    nodes = [Said(limits={"lane/orders": NOW + SECOND}, queues={"lane/orders": 1})]
    found = explain(facts(lane=lane, pool=None, nodes=nodes, standing={"turn": 3}))

    assert (found.until, found.eta) == (NOW + SECOND, NOW + SECOND + 2 * HOUR)
    assert "(rate = 2/h); the next token comes at 2026-03-01T12:00:01Z" in found.text
    assert explain(facts(lane=lane, pool=None, nodes=nodes)).eta is None
    shared = pool_of("web", rate="10/s")
    assert explain(facts(lane=lane, pool=shared, nodes=nodes, standing={"turn": 0})).eta is None


def test_after_a_pause_jobs_go_in_their_turn() -> None:
    def eta(pool: Pool | None = None, *, turn: int | None = None, **lane: object) -> datetime | None:
        row = paused(lane_of("orders", **lane), until=LATER)
        return explain(facts(lane=row, pool=pool, standing={"turn": turn})).eta

    assert eta() == eta(turn=199) == LATER
    assert eta(turn=200) is None
    assert eta(rate="1/m") is None
    assert eta(rate="1/m", turn=3) == LATER + timedelta(minutes=3)
    assert eta(pool_of("web", rate="10/s"), turn=0) is None
    for behind in ({"group_paused": True}, {"ahead": Neighbour("01J", S.DEAD, 1, BEFORE)}):
        assert explain(facts(lane=paused(LANE, until=LATER), standing=behind)).eta is None


def test_of_many_that_are_due_at_one_moment_each_has_its_turn() -> None:
    def eta(turn: int | None, **settings: object) -> datetime | None:
        lane = lane_of("orders", **settings)
        return explain(facts(job(due_at=LATER), lane=lane, pool=None, standing={"turn": turn})).eta

    assert eta(120, rate="60/m") == LATER + timedelta(minutes=2)
    assert eta(None, rate="60/m") is None  # more than anybody counts, or they share
    assert eta(3) == LATER


def test_a_job_that_comes_too_late_has_no_estimate() -> None:
    strict = lane_of("orders", misfire="skip_after(1h)")
    halted = paused(strict, until=NOW + SECOND)
    found = explain(facts(job(due_at=BEFORE), lane=halted))
    late = "; it expires then: that is later than misfire = skip_after(1h) allows"
    assert (found.gate, found.until, found.eta) == (Gate.LANE, NOW + SECOND, None)
    assert found.text.endswith(late)
    for one in (job(due_at=BEFORE, attempt=1), job(due_at=NOW)):
        assert explain(facts(one, lane=halted)).eta == NOW + SECOND
    for ago, words in ((0, f"after {stamp(NOW)}, as late as"), (1, "then: that is later than")):
        found = explain(facts(job(due_at=BEFORE - ago * SECOND), lane=paused(strict)))
        assert found.text.endswith(f"lets it go; it expires {words} misfire = skip_after(1h) allows")
    last, patient = datetime(9998, 12, 31, tzinfo=UTC), lane_of("orders", misfire="skip_after(500d)")
    assert explain(facts(job(due_at=last), lane=patient)).eta == last  # it is never too late for that

    found = explain(facts(job(due_at=NOW + SECOND, since=BEFORE - SECOND), lane=strict))  # it was put back
    assert (found.eta, found.text.endswith(late)) == (None, True)
    found = explain(facts(job(due_at=BEFORE - SECOND), lane=strict))
    text = "comes later than misfire = skip_after(1h) allows: it expires with the next pass"
    assert found == Explanation(S.PENDING, Gate.DUE, text, since=NOW - SECOND)
    assert explain(facts(lane=strict)).eta == NOW

    found = explain(facts(job(start_by=NOW + SECOND), lane=paused(LANE, until=LATER)))
    assert found.text.endswith("; it expires before that, at 2026-03-01T12:00:01Z")
    assert (found.until, found.eta) == (LATER, None)


def test_a_claimed_job_that_missed_its_time_has_no_estimate() -> None:
    nodes = [Said(limits={"lane/orders": NOW + SECOND})]
    missed = facts(job(S.CLAIMED, start_by=BEFORE), standing={"holder": "node 7"}, nodes=nodes)
    assert explain(missed).text.endswith("; it expires before that, at 2026-03-01T11:00:00Z")
    assert explain(missed).eta is None


def test_an_estimate_does_not_lie_in_the_past() -> None:
    put_back = job(S.CLAIMED, due_at=NOW)
    assert (
        explain(
            facts(put_back, standing={"holder": "node 7"}, nodes=[Said(limits={"lane/orders": BEFORE})])
        ).eta
        is None
    )


def test_a_job_may_name_a_pool_of_its_own() -> None:
    said = job().context
    assert said is not None
    own = job()._replace(context=said._replace(pool="bulk"))

    pools = {"bulk": pool_of("bulk"), "web": POOL}
    jobs = (own, job(), job()._replace(context=None))

    assert [counts_against(each, LANE, pools) for each in jobs] == [pools["bulk"], POOL, POOL]
    assert counts_against(own, LANE, {"web": POOL}) == POOL
    assert counts_against(own, lane_of("orders"), {"web": POOL}) is None


def test_a_job_whose_own_pool_was_deleted_says_what_counts_instead() -> None:
    held = explain(facts(lost_pool="bulk", standing={"group_paused": True}))
    free = explain(facts(lost_pool="bulk", pool=None))

    assert held.text.endswith(
        '; its own pool "bulk" was deleted: beside its lane\'s those of pool "web" count'
    )
    assert free.text.endswith("; its own pool \"bulk\" was deleted: beside its lane's no pool's limits count")


def test_a_target_that_is_no_address_has_no_name() -> None:
    lane: Lane = lane_of("orders", target="somewhere", pool="web")
    assert facts(lane=lane, pool=pool_of("web", key="target")).limits["pool/web"] is Gate.POOL
    assert facts(lane=lane_of("orders"), pool=pool_of("web", key="target")).limits["pool/web"] is Gate.POOL
    assert target_of("http://[::1/hook") is None
    assert paused_name("https://ann:x@API.example:8443/hook?a=1") == "https://api.example:8443"
    for wrong in ("orders", "", "http://a\x00b", "http://a\udcff", f"http://{'a' * 500}"):
        with pytest.raises(InvalidQuery, match="say scheme and host"):
            paused_name(wrong)


# -- who sends it
def test_a_sink_that_no_node_can_open_holds_its_lanes() -> None:
    broken = Said(sinks={"http": "cannot connect"})
    found = explain(facts(nodes=[broken, broken]))

    text = 'sink "http" cannot be opened: cannot connect; nodes try again by themselves'
    assert found == Explanation(S.PENDING, Gate.SINK, text)
    assert explain(facts(nodes=[broken, Said()])).gate is Gate.DUE


def test_a_sink_that_takes_nothing_of_a_lane_holds_that_lane() -> None:
    refused = Said(refused={"orders": "there is no queue"})
    found = explain(facts(nodes=[refused, refused]))

    text = 'sink "http" takes nothing: there is no queue; nodes try again by themselves'
    assert found == Explanation(S.PENDING, Gate.SINK, text)
    assert explain(facts(nodes=[refused, Said()])).gate is Gate.DUE
    assert explain(facts(nodes=[Said(refused={"others": "there is no queue"})])).gate is Gate.DUE


def test_a_lane_that_nobody_serves_says_what_to_start() -> None:
    found = explain(facts(nodes=[]))
    assert found == Explanation(
        S.PENDING, Gate.LANE, 'no running node serves lane "orders": start penstock serve'
    )

    found = explain(facts(nodes=[Said(frozenset({"others"}))]))
    assert found.text == 'no running node serves lane "orders": start penstock serve --lanes orders'

    waits = 'every node of lane "orders" stands by: none has the lease to send'
    assert explain(facts(nodes=[Said(standby="")])).text == f"{waits}; one will take it"
    cut = explain(facts(nodes=[Said(standby=""), Said(standby="redis: gone")]))
    assert (cut.gate, cut.text) == (Gate.LANE, f"{waits} (redis: gone); one will take it")
    assert explain(facts(nodes=[Said(standby=""), Said()])).gate is Gate.DUE

    stops = Said(stops=True, standby="", who="c (node 3)")
    gone = "(c (node 3) stops): start penstock serve"
    assert explain(facts(nodes=[stops])).text == f'no running node serves lane "orders" {gone}'
    assert explain(facts(nodes=[stops, Said()])).gate is Gate.DUE
    assert explain(facts(nodes=[stops, Said(standby="")])).text == f"{waits}; one will take it"

    drained = [Said(drains=0, who="a (node 1)"), Said(frozenset({"others"}), drains=0, who="b (node 2)")]
    told = "(a (node 1) was told to drain): start penstock serve, or let it go on: penstock nodes resume"
    assert explain(facts(nodes=drained)).text == f'no running node serves lane "orders" {told}'
    told = told.replace("drain)", "drain; c (node 3) stops)")
    assert explain(facts(nodes=[*drained, stops])).text == f'no running node serves lane "orders" {told}'
