"""Where things stand: why a job waits, who is at work, who leads."""

import json
from datetime import timedelta

import pytest

from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dispatched, Failed, Lapsed, Returned, Running, Succeeded
from penstock.domain.standing import Standing
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import NotFound
from penstock.ports.insight import LEADER
from penstock.ports.store import JobQuery, Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    claim,
    claim_groups,
    enqueue,
    in_state,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
)

S = JobState


def _standing(store: Store, job_id: str) -> Standing:
    standing = store.standing(job_id)
    assert standing is not None
    assert standing.job == store.find([job_id])[job_id]
    return standing


class StandingTests:
    """Why a job is where it is."""

    def test_an_unknown_job_stands_nowhere(self, store: Store) -> None:
        """There is nothing to say."""
        assert store.standing("nobody") is None

    def test_a_job_that_is_free_has_nobody_ahead(self, store: Store) -> None:
        """Nor is anything asked of it."""
        put_lane(store)
        [plain, first] = enqueue(store, job(), ordered())

        for job_id in (plain, first):
            standing = _standing(store, job_id)
            assert standing._replace(around=())[2:] == Standing(standing.now, standing.job)[2:]
            assert [each.id for each in standing.around] == [id_ for id_ in (job_id,) if id_ == first]
            assert abs(standing.now - store.now()) < timedelta(minutes=1)

    def test_a_job_behind_another_waits_for_the_first(self, store: Store) -> None:
        """However many are between them."""
        put_lane(store)
        due = store.now() + HOUR
        job_ids = enqueue(store, ordered(run_at=due, sequence=1), ordered(), ordered())

        for place, job_id in enumerate(job_ids[1:], 1):
            standing = _standing(store, job_id)
            assert standing.ahead is not None
            assert standing.ahead == (job_ids[0], S.PENDING, 1, due, None, None, None, None)
            assert standing.before == place
        assert _standing(store, job_ids[0]).ahead is None

    def test_a_job_without_order_has_its_place_in_its_lane(self, store: Store) -> None:
        """As long as none of the others has a tenant to share with, or an order to keep."""
        put_lane(store)
        later = store.now() + HOUR
        first, second, third = enqueue(store, job(), job(), job())
        herd = enqueue(store, *[job(run_at=later)] * 3)
        assert [_standing(store, id_).turn for id_ in (first, second, third)] == [0, 1, 2]
        assert [_standing(store, id_).turn for id_ in herd] == [0, 1, 2]  # what is due now will have gone
        some(claim(store, limit=1))
        assert [_standing(store, id_).turn for id_ in (first, second, third)] == [None, 0, 1]

        [theirs] = enqueue(store, job(tenant="acme"))
        assert {_standing(store, id_).turn for id_ in (second, theirs)} == {None}
        store.operate(Verb.CANCEL, [theirs], actor="ops", reason="because")
        assert _standing(store, third).turn == 1
        [ordered_one] = enqueue(store, ordered())
        assert {_standing(store, id_).turn for id_ in (third, ordered_one)} == {None}

    def test_a_group_waits_for_its_job_in_flight(self, store: Store) -> None:
        """Claimed, out, or at work."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        batch = some(claim_groups(store))
        for outcome in (None, Dispatched(HOUR), Running(HOUR)):
            if isinstance(outcome, Dispatched):
                settle(store, batch, outcome)
            standing = _standing(store, second)
            assert standing.ahead is not None
            assert (standing.ahead.id, standing.before) == (first, 1)
            shown = store.find([first])[first]
            assert standing.ahead.state is shown.state
            assert standing.ahead.since == (
                shown.live.started_at or shown.live.sent_at or shown.live.claimed_at
            )
            assert _standing(store, first).ahead is None

    def test_a_group_waits_for_the_first_of_a_run(self, store: Store) -> None:
        """All of a run are ahead of what was not taken."""
        put_lane(store)
        job_ids = enqueue(store, *(ordered() for _ in range(4)))
        some(claim_groups(store, run=3))

        standing = _standing(store, job_ids[3])
        assert standing.ahead is not None
        assert (standing.ahead.id, standing.ahead.state, standing.before) == (job_ids[0], S.CLAIMED, 3)

    def test_a_store_that_is_frozen_answers_as_the_store_does(self, store: Store) -> None:
        """All questions that a page has."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        operate(store, Verb.HOLD, first)

        with store.frozen() as still:
            assert still.find([first, second]) == store.find([first, second])
            assert still.timeline(first) == store.timeline(first)
            assert [still.standing(id_) for id_ in (first, "nobody")] != [None, None]
            assert still.list_jobs(JobQuery(lane=LANE)) == store.list_jobs(JobQuery(lane=LANE))
            assert still.list_groups(blocked=True) == store.list_groups(blocked=True)
            assert still.audit_log(lane=LANE) == store.audit_log(lane=LANE)
        operate(store, Verb.RELEASE, first)
        assert store.find([first])[first].state is S.PENDING

    def test_a_job_is_shown_among_those_next_to_it(self, store: Store) -> None:
        """Dead, claimed or waiting, three on each side, by sequence."""
        put_lane(store)
        dead = in_state(store, S.DEAD, group=GROUP, mode=Mode.NEXT_ON_ERROR, sequence=1)
        job_ids = enqueue(store, *(ordered(mode=Mode.NEXT_ON_ERROR, sequence=n) for n in range(2, 10)))
        enqueue(store, job(), ordered(group="other", sequence=1))
        some(claim_groups(store))

        around = _standing(store, job_ids[1]).around
        assert [each.id for each in around] == [dead, *job_ids[:5]]
        assert [each.sequence for each in around] == [1, 2, 3, 4, 5, 6]
        assert [each.state for each in around] == [S.DEAD, S.CLAIMED, *[S.PENDING] * 4]
        assert (around[0].error, around[0].since) == ("boom", store.find([dead])[dead].finished_at)
        assert [each.id for each in _standing(store, job_ids[7]).around] == job_ids[4:]
        assert [each.id for each in _standing(store, job_ids[0]).around] == [dead, *job_ids[:4]]
        assert [each.id for each in _standing(store, dead).around] == [dead, *job_ids[:3]]

    def test_a_group_waits_for_a_dead_job_and_says_what_it_died_of(self, store: Store) -> None:
        """Its head does, and all behind it."""
        put_lane(store)
        dead = in_state(store, S.DEAD, group=GROUP, mode=Mode.BLOCK_ON_ERROR)
        job_ids = enqueue(store, ordered(), ordered())

        for place, job_id in enumerate(job_ids):
            standing = _standing(store, job_id)
            assert standing.ahead is not None
            assert standing.ahead[:3] == (dead, S.DEAD, 99)
            assert standing.ahead[4:6] == (Reason.PERMANENT, "boom")
            assert standing.ahead.since == store.find([dead])[dead].finished_at
            assert standing.before == place

    def test_a_job_that_does_not_mind_the_dead_has_nobody_ahead(self, store: Store) -> None:
        """Those behind it wait for it alone."""
        put_lane(store)
        in_state(store, S.DEAD, group=GROUP, mode=Mode.BLOCK_ON_ERROR)
        first, second = enqueue(store, ordered(mode=Mode.NEXT_ON_ERROR), ordered())

        assert _standing(store, first).ahead is None
        ahead = _standing(store, second).ahead
        assert ahead is not None
        assert ahead.id == first

    def test_a_group_waits_for_a_held_job(self, store: Store) -> None:
        """Who held it is on record."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        operate(store, Verb.HOLD, first)

        ahead = _standing(store, second).ahead
        assert ahead is not None
        assert (ahead.id, ahead.state) == (first, S.HELD)
        held = _standing(store, first)
        assert held.ahead is None
        assert held.last is not None
        assert held.last[3:] == ("ops", "hold", "pending", "held", "because")
        assert ahead.since == held.last.at

    def test_a_group_waits_for_a_job_that_recovery_holds(self, store: Store) -> None:
        """Since its last attempt ended, in the list of groups too: nobody held it by hand."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Lapsed(hold=True))

        ahead, tried = _standing(store, second).ahead, _standing(store, first).tried
        assert ahead is not None
        assert tried is not None
        assert (ahead.id, ahead.reason, ahead.since) == (first, "outcome_unknown", tried.ended_at)
        [row] = store.list_groups(blocked=True).groups
        assert (row.blocker, row.since) == (first, tried.ended_at)

    def test_a_retry_keeps_its_place_ahead(self, store: Store) -> None:
        """With the error of its last attempt."""
        put_lane(store)
        first, second = enqueue(store, ordered(sequence=50), ordered(sequence=10, run_at=store.now() + HOUR))
        operate(store, Verb.HOLD, second)
        operate(store, Verb.RETRY, first)
        operate(store, Verb.SKIP, second)
        settle(store, some(claim_groups(store)), Failed("no route", HOUR))
        [late] = enqueue(store, ordered(sequence=1))

        ahead = _standing(store, late).ahead
        assert ahead is not None
        assert (ahead.id, ahead.state, ahead.sequence, ahead.error) == (first, S.PENDING, 50, "no route")
        tried = _standing(store, first).tried
        assert tried is not None
        assert (tried.outcome, tried.error, tried.attempt) == ("failed", "no route", 1)

    def test_jobs_that_keep_no_order_have_nobody_ahead(self, store: Store) -> None:
        """Even if they name a group."""
        put_lane(store)
        enqueue(store, ordered())
        [free] = enqueue(store, job(group=GROUP))

        standing = _standing(store, free)
        assert (standing.ahead, standing.before) == (None, 0)

    def test_a_paused_group_says_who_paused_it(self, store: Store) -> None:
        """The last time; nothing after it was let go."""
        put_lane(store)
        [job_id] = enqueue(store, ordered())
        for actor in ("ann", "bob"):
            store.pause_group(LANE, GROUP, paused=True, actor=actor, reason=f"{actor}'s reason")
        standing = _standing(store, job_id)

        assert standing.group_paused
        assert standing.group_pause is not None
        assert (standing.group_pause.actor, standing.group_pause.reason) == ("bob", "bob's reason")
        assert standing.group_until is None
        until = store.now() + HOUR
        store.pause_group(LANE, GROUP, paused=True, actor="ann", reason="for an hour", until=until)
        assert _standing(store, job_id).group_until == until
        store.pause_group(LANE, GROUP, paused=False, actor="ann", reason="over")
        assert _standing(store, job_id)[4:7] == (False, None, None)

    def test_a_claimed_job_says_who_has_it_and_for_how_long(self, store: Store) -> None:
        """A node by its name and number; the lease by the store's clock."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        node = store.register_node("host-1")
        batch = some(claim(store, node=node, lease=HOUR))

        standing = _standing(store, job_id)
        assert standing.holder == f"host-1 (node {node})"
        assert standing.lease_until == batch.lease_until
        settle(store, batch, Dispatched(HOUR))
        standing = _standing(store, job_id)
        assert (standing.holder, standing.lease_until) == (f"host-1 (node {node})", None)

    def test_a_holder_that_nobody_knows_is_a_number(self, store: Store) -> None:
        """Its row may be gone."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        some(claim(store, node=4711))

        assert _standing(store, job_id).holder == "node 4711"

    def test_what_was_asked_of_a_holder_is_told(self, store: Store) -> None:
        """With who asked, and when; not once the job has ended."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))
        before = store.now()
        operate(store, Verb.CANCEL, job_id)

        standing = _standing(store, job_id)
        assert (standing.request, standing.asked_by, standing.asked_why) == (Verb.CANCEL, "ops", "because")
        assert standing.asked_at is not None
        assert before <= standing.asked_at <= store.now()
        settle(store, batch, Succeeded())
        assert _standing(store, job_id)[-4:] == (None, None, None, None)

    def test_what_was_done_on_request_is_the_doing_of_who_asked(self, store: Store) -> None:
        """Not of Penstock, which only waited for the moment."""
        put_lane(store)
        for verb, state in ((Verb.CANCEL, S.CANCELLED), (Verb.HOLD, S.HELD)):
            [job_id] = enqueue(store, job())
            batch = some(claim(store))
            operate(store, verb, job_id)
            settle(store, batch, Returned("it was asked for"))

            standing = _standing(store, job_id)
            assert standing.job.state is state
            assert standing.last is not None
            assert (standing.last.actor, standing.last.reason) == ("ops", "because")

    def test_a_job_that_ended_has_nobody_ahead(self, store: Store) -> None:
        """However it ended."""
        put_lane(store)
        for state in (S.SUCCEEDED, S.CANCELLED, S.SKIPPED, S.EXPIRED, S.DEAD):
            job_id = in_state(store, state, group=GROUP, mode=Mode.NEXT_ON_ERROR)
            standing = _standing(store, job_id)
            assert (standing.ahead, standing.before, standing.group_paused) == (None, 0, False)

    def test_a_group_that_was_passed_on_is_nobodys(self, store: Store) -> None:
        """A job that is out and holds nobody up has nobody ahead, and is ahead of nobody."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(HOUR, passes=True))

        assert _standing(store, first).ahead is None
        assert _standing(store, second)[2:4] == (None, 0)


class NodeTests:
    """Who is at work."""

    def test_nodes_are_listed_newest_first(self, store: Store) -> None:
        """With their names and what they last said."""
        before = store.now()
        first, second = store.register_node("a"), store.register_node("b")
        store.beat(first, '{"lanes": ["*"]}')
        store.beat(second)

        nodes = store.nodes()
        assert [(node.id, node.name, node.note) for node in nodes] == [
            (second, "b", None),
            (first, "a", '{"lanes": ["*"]}'),
        ]
        assert all(before <= node.started_at <= node.seen_at <= store.now() for node in nodes)
        assert all(node.version for node in nodes)

    def test_a_beat_without_a_word_leaves_the_last_one(self, store: Store) -> None:
        """A new one takes its place."""
        node = store.register_node("a")
        store.beat(node, '{"sinks": {}}')
        store.beat(node)
        assert store.nodes()[0].note == '{"sinks": {}}'
        store.beat(node, "{}")
        assert store.nodes()[0].note == "{}"

    def test_a_node_is_told_to_drain_and_to_go_on(self, store: Store) -> None:
        """That one alone; each change is audited once."""
        first, second = store.register_node("a"), store.register_node("b")
        assert store.draining(first) is None
        drain = store.drain_node(first, draining=True, actor="ann", reason="a new machine")
        assert drain is not None
        assert (drain.actor, drain.reason, drain.until) == ("ann", "a new machine", None)
        assert store.drain_node(first, draining=True, actor="ann", reason="a new machine") == drain
        assert (store.draining(first), store.draining(second)) == (drain, None)
        assert {node.id: node.drain for node in store.nodes()} == {first: drain, second: None}
        store.beat(first, '{"drains": 0}')
        assert store.draining(first) == drain
        assert store.drain_node(first, draining=False, actor="bob", reason="it stays") is None
        assert store.drain_node(first, draining=False, actor="bob", reason="it stays") is None
        assert store.draining(first) is None

        rows = store.audit_log(limit=10).entries[::-1]
        assert [(row.action, row.actor, row.reason) for row in rows] == [
            ("node.drain", "ann", "a new machine"),
            ("node.resume", "bob", "it stays"),
        ]
        assert json.loads(rows[0].after or "")["node"] == str(first)
        with pytest.raises(NotFound):
            store.drain_node(second + 1, draining=True, actor="ann", reason="who?")

    def test_somebody_leads_or_nobody(self, store: Store) -> None:
        """As long as the term lasts."""
        a, b = store.register_node("a"), store.register_node("b")
        assert store.leader() is None
        term = store.elect(LEADER, a, HOUR)
        assert term is not None
        assert store.leader() == a
        store.resign(LEADER, term)
        assert store.leader() is None
        store.elect("another role", a, HOUR)
        store.elect(LEADER, b, HOUR)
        assert store.leader() == b
