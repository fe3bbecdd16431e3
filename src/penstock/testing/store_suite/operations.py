"""Bulk operations: what a filter finds is done once, in order, and goes on where it was."""

from datetime import timedelta

import pytest

from penstock.domain.operations import NewOperation, Operation
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import InUse, InvalidCursor, InvalidQuery, NotFound, TermOver
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    ids,
    in_state,
    job,
    ordered,
    put_lane,
    settle,
    some,
    state,
)

S = JobState


def start(store: Store, verb: Verb = Verb.RETRY, line: str = "state:dead", **more: object) -> Operation:
    """Begin an operation."""
    new = NewOperation(verb=verb, filter=line, actor="ops", reason="fixed", **more)  # type: ignore[arg-type]
    return store.start_operation(new)


def run(store: Store, operation: Operation, steps: int = 1_000) -> Operation:
    """Take an operation to its end, as a leader does."""
    for _ in range(steps):
        if operation.state == "collecting":
            operation = store.collect_operation(operation.id)
        elif operation.state == "working":
            operation = store.work_operation(operation.id)
        else:
            return operation
    raise AssertionError("it does not end")


def dead_group(store: Store, number: int, group: str = "g") -> list[str]:
    """Let jobs of one ordered group die, one after the other; they do not stop each other."""
    made = []
    for _ in range(number):
        made += enqueue(store, ordered(group, mode=Mode.NEXT_ON_ERROR))
        settle(store, some(claim_groups(store)), Dead(Reason.EXHAUSTED, "boom"))
    return made


class OperationTests:
    """Bulk operations."""

    def test_an_operation_does_what_its_verb_does_to_all_that_match(self, store: Store) -> None:
        """And to nothing else; it counts, and it is audited from its start to its end."""
        put_lane(store)
        put_lane(store, "other")
        dead = [in_state(store, S.DEAD) for _ in range(3)]
        spared = in_state(store, S.DEAD, lane="other")
        ended = run(store, start(store, line="lane:orders"))

        assert (ended.state, ended.matched, ended.done, ended.refused) == ("done", 3, 3, 0)
        assert ended.finished_at is not None
        assert {state(store, id_) for id_ in dead} == {S.PENDING}
        assert state(store, spared) is S.DEAD
        actions = [entry.action for entry in store.audit_log(limit=500).entries]
        assert actions[0] == "operation.done"
        assert actions[1:4] == ["retry"] * 3
        assert "operation.start" in actions
        assert ended.id in (store.timeline(dead[0]).audit[-1].reason or "")
        assert store.operation(ended.id) == ended

    @pytest.mark.parametrize(
        ("verb", "before", "after"),
        [
            (Verb.CANCEL, S.PENDING, S.CANCELLED),
            (Verb.SKIP, S.HELD, S.SKIPPED),
            (Verb.HOLD, S.PENDING, S.HELD),
            (Verb.RELEASE, S.HELD, S.PENDING),
            (Verb.RETRY, S.DEAD, S.PENDING),
        ],
    )
    def test_every_verb_knows_which_states_it_is_about(
        self, store: Store, verb: Verb, before: JobState, after: JobState
    ) -> None:
        """A filter need not name them."""
        put_lane(store)
        done = in_state(store, S.SUCCEEDED)
        job_id = in_state(store, before)
        assert run(store, start(store, verb, "lane:orders")).done == 1
        assert (state(store, job_id), state(store, done)) == (after, S.SUCCEEDED)

    def test_a_group_goes_again_in_its_order(self, store: Store) -> None:
        """Although the list shows the newest first, and although the slices are small."""
        put_lane(store)
        made = [dead_group(store, 1, f"g{n % 2}")[0] for n in range(6)]
        operation = start(store, rate=1)
        operation = store.collect_operation(operation.id)
        for _ in range(100):
            before, operation = operation, store.work_operation(operation.id)
            if operation.state == "done":
                break
            assert operation.done - before.done <= 1
        # A rate is kept by the store's clock: what is not due yet is not done.
        assert operation.refused == 0
        if operation.state == "working":
            store.stop_operation(operation.id, actor="ops", reason="by hand")
            assert run(store, start(store)).refused == 0
        sent = drain(store)
        for group in (0, 1):
            assert [id_ for id_ in sent if id_ in made[group::2]] == made[group::2]

    def test_a_rate_is_kept(self, store: Store) -> None:
        """The next slice waits for its time."""
        put_lane(store)
        for _ in range(4):
            in_state(store, S.DEAD)
        operation = store.collect_operation(start(store, rate=2).id)
        first = store.work_operation(operation.id)
        again = store.work_operation(operation.id)
        assert (first.done, again) == (2, first)
        assert first.next_at - store.now() <= timedelta(seconds=1)

    def test_what_is_refused_is_counted_by_its_reason(self, store: Store) -> None:
        """And left alone."""
        put_lane(store)
        [one, two] = enqueue(store, ordered("g"), ordered("g", mode=None))
        settle(store, some(claim_groups(store)), Dead(Reason.EXHAUSTED, "boom"))
        assert ids(claim(store)) == [two]
        running = run(store, start(store, Verb.SKIP, "state:claimed,dead"))
        assert (running.done, running.refused) == (1, 1)
        assert "skip does nothing to a job that is claimed" in running.refusals
        assert (state(store, one), state(store, two)) == (S.SKIPPED, S.CLAIMED)

    def test_one_that_is_stopped_stays_where_it_is(self, store: Store) -> None:
        """What is done is done; the audit says who stopped it."""
        put_lane(store)
        for _ in range(3):
            in_state(store, S.DEAD)
        operation = store.collect_operation(start(store, rate=1).id)
        store.work_operation(operation.id)
        stopped = store.stop_operation(operation.id, actor="eve", reason="wrong lane")

        assert (stopped.state, stopped.done, stopped.stopped_by) == ("stopped", 1, "eve")
        assert store.work_operation(operation.id) == stopped
        assert store.stop_operation(operation.id, actor="x", reason="y") == stopped
        assert store.audit_log(limit=1).entries[0].action == "operation.stop"
        assert store.open_operations() == []

    def test_an_edit_changes_each_payload_and_keeps_the_versions(self, store: Store) -> None:
        """A merge leaves what it does not name, byte for byte where it can; what has no object is refused."""
        put_lane(store)
        one = in_state(store, S.DEAD, payload='{"url": "http://a", "n": 1.10}')
        two = in_state(store, S.DEAD, payload="[1]")
        change = '{"merge": "{\\"url\\": \\"http://b\\"}"}'
        ended = run(store, start(store, Verb.EDIT, "", change=change))

        assert (ended.done, ended.refused) == (1, 1)
        context = find(store, one).context
        assert context is not None
        assert context.payload == '{"url": "http://b", "n": 1.10}'
        assert (state(store, one), state(store, two)) == (S.PENDING, S.DEAD)
        assert store.payload_versions(one)[0].payload == '{"url": "http://a", "n": 1.10}'

    def test_an_edit_that_makes_a_payload_too_large_for_its_lane_is_refused(self, store: Store) -> None:
        """Job by job, as their payloads differ; the others are edited."""
        put_lane(store, max_payload="40B")
        short = in_state(store, S.DEAD, payload='{"n": 1}')
        long = in_state(store, S.DEAD, payload='{"n": "a quite long text"}')
        change = '{"merge": "{\\"to\\": \\"ann@example\\"}"}'
        ended = run(store, start(store, Verb.EDIT, "", change=change))

        assert (ended.done, ended.refused) == (1, 1)
        assert "more than the lane's max_payload of 40B" in ended.refusals
        assert (state(store, short), state(store, long)) == (S.PENDING, S.DEAD)

    def test_jobs_that_come_later_are_not_meant(self, store: Store) -> None:
        """Nor is a job done twice that dies again meanwhile."""
        put_lane(store)
        first = in_state(store, S.DEAD)
        operation = store.collect_operation(start(store).id)
        later = in_state(store, S.DEAD)
        assert run(store, operation).matched == 1
        assert (state(store, first), state(store, later)) == (S.PENDING, S.DEAD)

    def test_the_same_key_is_the_same_operation(self, store: Store) -> None:
        """A caller that lost the answer may ask again."""
        put_lane(store)
        one = start(store, key="k")
        assert start(store, key="k") == one
        assert start(store, key="other").id != one.id
        for other in ({"verb": Verb.SKIP}, {"line": "state:held"}, {"tenant": "acme"}, {"rate": 7}):
            with pytest.raises(InUse, match='key "k" belongs to another operation'):
                start(store, key="k", **other)

    def test_operations_are_listed_newest_first(self, store: Store) -> None:
        """Page by page."""
        put_lane(store)
        made = [start(store).id for _ in range(5)]
        page = store.operations(limit=2)
        rest = store.operations(limit=500, after=page.next)
        assert [one.id for one in (*page.operations, *rest.operations)] == made[::-1]
        assert rest.next is None
        assert [one.id for one in store.open_operations()] == made
        with pytest.raises(InvalidCursor):
            store.operations(after="x")
        with pytest.raises(InvalidQuery):
            store.operations(limit=0)

    def test_there_is_an_end_to_how_many_may_be_open(self, store: Store) -> None:
        """The next one is refused."""
        put_lane(store)
        for _ in range(20):
            start(store)
        with pytest.raises(InUse, match="was not begun: 20 are open"):
            start(store)

    def test_one_tenant_does_not_take_the_places_of_all(self, store: Store) -> None:
        """Nobody else of a tenant could see what is in the way, or stop it."""
        put_lane(store)
        own = [start(store, tenant="a") for _ in range(5)]
        with pytest.raises(InUse, match="was not begun: 5 of this tenant are open"):
            start(store, tenant="a")
        assert [start(store, tenant=tenant).state for tenant in ("b", None)] == ["collecting"] * 2
        store.stop_operation(own[0].id, actor="ops", reason="enough")
        assert start(store, tenant="a").state == "collecting"

    def test_what_cannot_be_is_refused(self, store: Store) -> None:
        """A wrong filter before anything is written, an unknown id, a leader that no longer leads."""
        with pytest.raises(InvalidQuery):
            start(store, line="lnae:x")
        with pytest.raises(InvalidQuery, match="settle_dead is none of"):
            start(store, Verb.SETTLE_DEAD)
        assert store.operation("x") is None
        for call in (store.collect_operation, store.work_operation):
            with pytest.raises(NotFound):
                call("x")
        term = store.elect("leader", 1, timedelta(minutes=1))
        assert term is not None
        operation = start(store)
        store.resign("leader", term)
        for call in (store.collect_operation, store.work_operation):
            with pytest.raises(TermOver):
                call(operation.id, under=term)
        failed = store.fail_operation(operation.id, "it is broken")
        assert (failed.state, failed.problem) == ("failed", "it is broken")

    def test_a_tenant_s_operation_is_about_that_tenant(self, store: Store) -> None:
        """Whatever its filter says."""
        put_lane(store)
        one = in_state(store, S.DEAD, tenant="t1")
        two = in_state(store, S.DEAD, tenant="t2")
        assert run(store, start(store, tenant="t1")).done == 1
        assert (state(store, one), state(store, two)) == (S.PENDING, S.DEAD)

    def test_retention_forgets_the_jobs_of_what_is_over(self, store: Store) -> None:
        """The operation itself is kept for a while."""
        put_lane(store)
        job_id = enqueue(store, job())[0]
        ended = run(store, start(store, Verb.HOLD, f"id:{job_id}"))
        store.retire(slice_rows=1_000)
        assert store.operation(ended.id) == ended
