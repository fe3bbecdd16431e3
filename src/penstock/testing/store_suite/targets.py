"""Breakers of targets, and the pause of the whole store."""

import json
from datetime import datetime, timedelta
from functools import partial

import pytest

from penstock.domain.pauses import MOST
from penstock.errors import InvalidQuery
from penstock.ports.flow import Target
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    ZERO,
    claim,
    enqueue,
    job,
    pause_and_wait,
    put_lane,
    some,
    together,
)

HOST = "https://example.org:443"


def mark(
    store: Store,
    *,
    failed: int = 0,
    ok: int = 0,
    open_for: timedelta = HOUR,
    slow_for: timedelta = ZERO,
    name: str = HOST,
) -> Target:
    """Note calls; three failures in a row are too many."""
    return store.mark_target(name, failed=failed, ok=ok, trip_after=3, open_for=open_for, slow_for=slow_for)


class TargetTests:
    """Breakers and slow-downs."""

    def test_nothing_is_known_of_targets_that_do_well(self, store: Store) -> None:
        """However often that is said."""
        assert store.targets() == {}
        assert mark(store, ok=5) == Target(HOST)
        assert store.targets() == {}

    def test_failures_in_a_row_open_the_breaker(self, store: Store) -> None:
        """Counted over notes; others are left alone."""
        before = store.now()
        assert mark(store, failed=2)[:3] == (HOST, "closed", 2)
        assert store.targets() == {}
        opened = mark(store, failed=1)

        assert (opened.state, opened.failures) == ("open", 3)
        assert opened.opened_at is not None
        assert before <= opened.opened_at <= store.now()
        assert opened.until == opened.opened_at + HOUR
        assert store.targets() == {HOST: opened}
        mark(store, failed=3, name="http://other")
        assert set(store.targets()) == {HOST, "http://other"}

    def test_a_success_closes_the_breaker(self, store: Store) -> None:
        """And begins the count anew; so does one before it opened."""
        mark(store, failed=2)
        mark(store, ok=1)
        assert mark(store, failed=2).state == "closed"
        mark(store, failed=1)
        assert mark(store, ok=1, failed=2) == Target(HOST)
        assert store.targets() == {}

    def test_more_failures_do_not_prolong_an_open_breaker(self, store: Store) -> None:
        """They were on their way when it opened."""
        opened = mark(store, failed=3)
        again = mark(store, failed=4, open_for=2 * HOUR)

        assert (again.state, again.failures, again.until) == ("open", 7, opened.until)

    def test_after_its_time_an_open_breaker_is_tried(self, store: Store) -> None:
        """One failure opens it again, one success closes it."""
        mark(store, failed=3, open_for=PAST)
        assert store.targets()[HOST].state == "trial"
        opened = mark(store, failed=1)
        assert (opened.state, opened.failures) == ("open", 4)
        assert opened.until is not None
        assert opened.until > store.now()
        mark(store, ok=1)
        mark(store, failed=3, open_for=PAST)
        assert mark(store, ok=1) == Target(HOST)

    def test_a_target_that_asks_to_be_left_alone_goes_slow(self, store: Store) -> None:
        """For the longest it asked for; that is no failure, and success does not end it."""
        now = store.now()
        slow = mark(store, slow_for=2 * HOUR)
        mark(store, slow_for=HOUR)
        mark(store, ok=1)
        known = store.targets()[HOST]

        assert (slow.state, slow.failures) == ("closed", 0)
        assert known.slow_until is not None
        assert now + HOUR < known.slow_until == slow.slow_until
        assert mark(store, slow_for=3 * HOUR).slow_until != slow.slow_until

    def test_notes_of_several_nodes_add_up(self, store: Store) -> None:
        """Also when all of them are the first."""
        for number in range(10):
            host = f"http://host-{number}"
            together(*[partial(mark, store, failed=1, name=host)] * 4)
            known = store.targets()[host]
            assert (known.state, known.failures) == ("open", 4)

    def test_an_operator_closes_a_breaker_by_hand(self, store: Store) -> None:
        """That is audited; what was never open is left alone, and a pause stays."""
        assert not store.reset_target(HOST, actor="ann", reason="why not")
        mark(store, failed=3, slow_for=HOUR)
        pause = store.pause_target(HOST, paused=True, actor="ann", reason="night")
        assert store.reset_target(HOST, actor="ann", reason="they are back")
        assert store.targets() == {HOST: Target(HOST, pause=pause)}
        assert not store.reset_target(HOST, actor="ann", reason="once more")

        last = store.audit_log(limit=1).entries[0]
        assert (last.action, last.actor, last.reason) == ("target.reset", "ann", "they are back")
        assert json.loads(last.before or "") == {"target": HOST, "breaker": "open", "failures": 3}


class TargetPauseTests:
    """Stopping what goes to one target."""

    def test_a_paused_target_says_who_and_why_until_somebody_lets_it_go(self, store: Store) -> None:
        """Whatever its calls are like meanwhile; others are left alone."""
        before = store.now()
        pause = store.pause_target(HOST, paused=True, actor="ann", reason="they move house")

        assert pause is not None
        assert (pause.actor, pause.reason, pause.until) == ("ann", "they move house", None)
        assert before <= pause.at <= store.now()
        assert store.targets() == {HOST: Target(HOST, pause=pause)}
        mark(store, failed=3)
        known = store.targets()[HOST]
        assert (known.state, known.failures, known.pause) == ("open", 3, pause)
        mark(store, ok=1)
        assert store.targets() == {HOST: Target(HOST, pause=pause)}
        assert store.pause_target(HOST, paused=False, actor="bob", reason="they are there") is None
        assert store.targets() == {}

    def test_the_pause_of_a_target_may_end_by_itself(self, store: Store) -> None:
        """Then nothing is known of it; the next pause of any target clears it away."""
        until = store.now() + HOUR
        pause = store.pause_target(HOST, paused=True, until=until, actor="ann", reason="night")
        assert pause is not None
        assert pause.until == until

        def pause_shortly(until: datetime) -> None:
            store.pause_target(HOST, paused=True, until=until, actor="ann", reason="night")

        pause_and_wait(store, pause_shortly)
        assert store.targets() == {}
        store.pause_target("http://other", paused=True, actor="ann", reason="night")
        assert set(store.targets()) == {"http://other"}

    def test_each_change_of_a_pause_is_audited_once(self, store: Store) -> None:
        """With the target, who and why; the whole store is not concerned."""
        store.pause_target(HOST, paused=False, actor="ann", reason="no")
        once = store.pause_target(HOST, paused=True, actor="ann", reason="night")
        assert store.pause_target(HOST, paused=True, actor="ann", reason="night") == once
        store.pause_target(HOST, paused=False, actor="bob", reason="day")
        rows = store.audit_log(limit=100).entries[::-1]

        assert [(row.action, row.actor, row.reason) for row in rows] == [
            ("target.pause", "ann", "night"),
            ("target.resume", "bob", "day"),
        ]
        assert json.loads(rows[0].after or "")["target"] == HOST
        assert (rows[0].before, rows[1].before, rows[1].after) == (None, rows[0].after, None)
        assert store.store_pause() is None

    def test_not_every_target_there_is_can_be_paused(self, store: Store) -> None:
        """Nodes keep them in mind; one that is paused can still be changed."""
        for number in range(MOST):
            store.pause_target(f"http://host-{number}", paused=True, actor="ann", reason="all of them")
        with pytest.raises(InvalidQuery, match="resume some"):
            store.pause_target(HOST, paused=True, actor="ann", reason="one more")
        store.pause_target("http://host-1", paused=True, actor="bob", reason="still")
        store.pause_target("http://host-2", paused=False, actor="bob", reason="over")
        store.pause_target(HOST, paused=True, actor="ann", reason="one more")


class StorePauseTests:
    """Stopping everything."""

    def test_a_paused_store_says_so_to_every_holder(self, store: Store) -> None:
        """Who, why, since when; until somebody lets it go."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))
        assert store.store_pause() is None
        before = store.now()
        pause = store.pause_store(paused=True, actor="ann", reason="outage")

        assert pause is not None
        assert (pause.actor, pause.reason, pause.until) == ("ann", "outage", None)
        assert before <= pause.at <= store.now()
        assert store.store_pause() == pause
        assert store.confirm(batch).stopped == "the store is paused by ann: outage"
        assert store.pause_store(paused=False, actor="bob", reason="over") is None
        assert (store.store_pause(), store.confirm(batch).stopped) == (None, None)

    def test_a_pause_may_end_by_itself(self, store: Store) -> None:
        """Then it is as if there were none."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))
        until = store.now() + HOUR
        pause = store.pause_store(paused=True, until=until, actor="ann", reason="outage")
        assert pause is not None
        assert pause.until == until
        assert "(until " in str(store.confirm(batch).stopped)

        def pause_shortly(until: datetime) -> None:
            store.pause_store(paused=True, until=until, actor="ann", reason="outage")

        pause_and_wait(store, pause_shortly)
        assert (store.store_pause(), store.confirm(batch).stopped) == (None, None)

    def test_the_same_pause_again_changes_nothing(self, store: Store) -> None:
        """Nor does the end of one that never was; each change is audited once."""
        put_lane(store)
        store.pause_store(paused=False, actor="ann", reason="no")
        once = store.pause_store(paused=True, actor="ann", reason="outage")
        assert store.pause_store(paused=True, actor="ann", reason="outage") == once
        store.pause_store(paused=True, actor="bob", reason="audit")
        store.pause_store(paused=False, actor="bob", reason="over")
        entries = [row for row in store.audit_log(limit=100).entries[::-1] if row.action.startswith("store.")]

        assert [(row.action, row.actor, row.reason) for row in entries] == [
            ("store.pause", "ann", "outage"),
            ("store.pause", "bob", "audit"),
            ("store.resume", "bob", "over"),
        ]
        assert {(row.lane, row.job) for row in entries} == {(None, None)}
        assert [row.before for row in entries] == [None, entries[0].after, entries[1].after]
        assert json.loads(entries[0].after or "")["paused_by"] == "ann"
        assert entries[2].after is None

    def test_jobs_can_still_be_claimed_and_settled(self, store: Store) -> None:
        """What is stopped is sending; what is on its way comes home."""
        put_lane(store)
        enqueue(store, job())
        store.pause_store(paused=True, actor="ann", reason="outage")
        batch = some(claim(store))
        store.settle(batch)

        assert store.depth(LANE) == 0
