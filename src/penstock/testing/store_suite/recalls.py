"""Jobs that a pool put back come when it is set otherwise, or when it is no longer theirs."""

from datetime import timedelta

import pytest

from penstock.domain.outcomes import Failed, Returned
from penstock.domain.pools import mark, pool
from penstock.domain.states import JobState, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    ZERO,
    claim,
    claim_groups,
    enqueue,
    find,
    ids,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
)
from penstock.testing.store_suite.pools import put_pool

SLOW = pool("web", rate="1/h", key="tenant")


def put_back(store: Store, *, of_lane: bool = True, ago: timedelta = ZERO) -> tuple[str, str]:
    """Return an unordered job and the head of a group that the pool of their lane put back."""
    put_pool(store, SLOW.name, **SLOW.settings)
    put_lane(store, pool=SLOW.name)
    [plain, head] = enqueue(store, job(tenant="a", run_at=store.now() - ago), ordered())
    for batch in (some(claim(store)), some(claim_groups(store))):
        settle(store, batch, Returned("limit of pool/web/a", HOUR, mark(SLOW, of_lane=of_lane)))
    return plain, head


class RecallTests:
    """Recalls."""

    def test_jobs_stay_while_their_pool_is_as_it_was(self, store: Store) -> None:
        """Other pools and lanes may change, the pool may be paused."""
        waiting = put_back(store)
        put_pool(store, "db", rate="5/s")
        put_lane(store, "other", pool="db")
        put_lane(store, pool=SLOW.name, batch_size=7)
        store.pause_pool(SLOW.name, paused=True, actor="ops", reason="rest")

        assert store.recall(10) == {}
        assert all(find(store, id_).live.due_at > store.now() for id_ in waiting)
        assert {find(store, id_).live.reason for id_ in waiting} == {mark(SLOW, of_lane=True)}

    def test_a_pool_that_is_set_otherwise_lets_them_come(self, store: Store) -> None:
        """Both kinds; they cost no attempt, and there is nothing to do the second time."""
        plain, head = put_back(store)
        put_pool(store, SLOW.name, rate="5/s", key="tenant")

        assert store.recall(10) == {LANE: 2}
        assert store.recall(10) == {}
        rows = [find(store, id_).live for id_ in (plain, head)]
        assert {(row.state, row.reason, row.attempt, row.send) for row in rows} == {
            (JobState.PENDING, None, 0, 0)
        }
        assert (ids(claim(store)), ids(claim_groups(store))) == ([plain], [head])

    @pytest.mark.parametrize("other", [None, "db"])
    def test_a_lane_that_leaves_its_pool_takes_them_along(self, store: Store, other: str | None) -> None:
        """Whether it has another one or none."""
        put_back(store)
        put_pool(store, "db", **SLOW.settings)
        put_lane(store, pool=other)

        assert store.recall(10) == {LANE: 2}

    def test_those_that_name_their_pool_themselves_stay_with_it(self, store: Store) -> None:
        """Until it is gone: from then on they are of their lane's."""
        named = put_back(store, of_lane=False)
        put_lane(store, pool=None)

        assert store.recall(10) == {}
        assert {find(store, id_).live.reason for id_ in named} == {mark(SLOW, of_lane=False)}
        store.delete_pool(SLOW.name, actor="ops")
        assert store.recall(10) == {LANE: 2}

    def test_they_come_a_slice_at_a_time_the_oldest_first(self, store: Store) -> None:
        """However many wait."""
        put_pool(store, SLOW.name, **SLOW.settings)
        put_lane(store, pool=SLOW.name)
        jobs = enqueue(store, *(job() for _ in range(5)))
        settle(store, some(claim(store)), Returned("limit", HOUR, mark(SLOW, of_lane=True)))
        put_pool(store, SLOW.name)

        assert [store.recall(2), ids(claim(store))] == [{LANE: 2}, jobs[:2]]
        assert [store.recall(2), ids(claim(store))] == [{LANE: 2}, jobs[2:4]]
        assert [store.recall(2), ids(claim(store))] == [{LANE: 1}, jobs[4:]]

    @pytest.mark.parametrize("verb", [Verb.RETRY, Verb.HOLD, Verb.CANCEL])
    def test_who_was_sent_on_or_away_waits_for_no_pool(self, store: Store, verb: Verb) -> None:
        """Nor does one that got another time."""
        plain, head = put_back(store)
        operate(store, verb, plain)
        later = store.now() + HOUR
        store.edit(head, run_at=later, actor="ops", reason="later")
        put_pool(store, SLOW.name)

        assert store.recall(10) == {}
        assert find(store, plain).live.reason == ("operator" if verb is Verb.HOLD else None)
        assert (find(store, head).live.due_at, find(store, head).live.reason) == (later, None)

    def test_one_that_was_held_goes_at_once_when_it_is_released(self, store: Store) -> None:
        """It waited for the pool, and not for a time that somebody had set."""
        plain, head = put_back(store)
        for id_ in (plain, head):
            operate(store, Verb.HOLD, id_)
            operate(store, Verb.RELEASE, id_)

        assert (ids(claim(store)), ids(claim_groups(store))) == ([plain], [head])

    def test_of_being_let_go_again_and_again_the_last_times_are_on_record(self, store: Store) -> None:
        """As of being given back."""
        plain, _ = put_back(store)
        for number in range(1, 9):
            put_pool(store, SLOW.name, rate=f"{number}/h" if number > 1 else "7/h", key="tenant")
            store.recall(10)
            settle(store, some(claim(store)), Returned("limit", HOUR, mark(SLOW, of_lane=True)))

        actions = [note.action for note in store.timeline(plain).audit]
        assert (actions.count("return"), actions.count("hurry")) == (5, 5)

    def test_those_that_were_put_back_have_been_due_since_before(self, store: Store) -> None:
        """The first of them; one that was tried before, since its next attempt was due."""
        assert store.vitals().put_back_s == {}
        plain, head = put_back(store, ago=2 * HOUR)
        assert store.vitals().put_back_s == {LANE: pytest.approx(7200, abs=60)}
        operate(store, Verb.CANCEL, plain)
        operate(store, Verb.RETRY, head)
        settle(store, some(claim_groups(store)), Failed("no", PAST))
        settle(store, some(claim_groups(store)), Returned("limit", HOUR, mark(SLOW, of_lane=True)))
        assert store.vitals().put_back_s == {LANE: pytest.approx(-PAST.total_seconds(), abs=60)}
        put_pool(store, SLOW.name)
        store.recall(10)
        assert store.vitals().put_back_s == {}
