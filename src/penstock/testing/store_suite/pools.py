"""Pools, and lanes that are paused or deleted."""

from datetime import timedelta
from functools import partial

import pytest

from penstock.domain.pools import Pool, pool
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InUse, InvalidSetting, NotFound, UnknownLane
from penstock.ports.store import JobQuery, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    claim,
    drain,
    enqueue,
    find,
    in_state,
    job,
    operate,
    ordered,
    put_lane,
)

S = JobState
WEB = pool("web", rate="200/s", burst=50, max_in_flight=20, key="tenant")


def put_pool(store: Store, name: str = "web", **settings: object) -> Pool:
    """Create a pool, or change it."""
    return store.put_pool(pool(name, **settings), actor="suite")


class PoolTests:
    """Pools."""

    def test_a_pool_is_kept_as_it_was_given(self, store: Store) -> None:
        """With a number and its first version."""
        stored = store.put_pool(WEB, actor="suite")

        assert (stored.id > 0, stored.version, stored.paused) == (True, 1, False)
        assert stored.settings == WEB.settings
        assert store.pools() == {"web": stored}

    def test_a_changed_pool_keeps_its_number_and_raises_its_version(self, store: Store) -> None:
        """A setting can be taken back; the same again changes nothing."""
        before = store.put_pool(WEB, actor="suite")
        after = put_pool(store, rate="5/m", max_in_flight=20)

        assert (after.id, after.rate, after.burst, after.key) == (before.id, "5/m", None, None)
        assert after.version > before.version
        assert put_pool(store, rate="5/m", max_in_flight=20) == after
        assert store.pools() == {"web": after}

    def test_a_pool_is_deleted(self, store: Store) -> None:
        """Its number is not given again."""
        gone, kept = put_pool(store), put_pool(store, "other")
        store.delete_pool("web", actor="ops")

        assert store.pools() == {"other": kept}
        assert put_pool(store).id not in (gone.id, kept.id)

    def test_a_pool_that_a_lane_names_is_not_deleted(self, store: Store) -> None:
        """Its limit would be gone without a word."""
        put_pool(store)
        put_lane(store, pool="web")
        with pytest.raises(InUse, match=f'pool "web" is used by {LANE}'):
            store.delete_pool("web", actor="ops")
        put_lane(store)
        store.delete_pool("web", actor="ops")

        assert store.pools() == {}

    def test_an_unknown_pool_is_an_error(self, store: Store) -> None:
        """Not nothing."""
        with pytest.raises(NotFound, match='no pool "web"'):
            store.delete_pool("web", actor="ops")
        with pytest.raises(NotFound):
            store.pause_pool("web", paused=True, actor="ops", reason="because")

    def test_a_paused_pool_says_so_and_its_settings_leave_it_paused(self, store: Store) -> None:
        """Until when, why and by whom; then it goes on."""
        before = store.put_pool(WEB, actor="suite")
        until = store.now() + HOUR
        paused = store.pause_pool("web", paused=True, until=until, actor="ann", reason="outage")

        assert (paused.paused, paused.paused_until) == (True, until)
        assert (paused.pause_reason, paused.paused_by) == ("outage", "ann")
        assert paused.version > before.version
        changed = put_pool(store, rate="1/s")
        assert (changed.paused, changed.pause_reason, changed.rate) == (True, "outage", "1/s")
        resumed = store.pause_pool("web", paused=False, actor="bob", reason="over")
        assert (resumed.paused, resumed.pause_reason, resumed.paused_by) == (False, None, None)
        assert store.pools() == {"web": resumed}


class PauseTests:
    """Paused lanes."""

    def test_a_paused_lane_says_so(self, store: Store) -> None:
        """From `pause_lane` and from `lanes`; every change raises the version."""
        before = put_lane(store)
        until = store.now() + HOUR
        paused = store.pause_lane(LANE, paused=True, until=until, actor="ann", reason="outage")

        assert not before.paused
        assert (paused.paused, paused.paused_until) == (True, until)
        assert (paused.pause_reason, paused.paused_by) == ("outage", "ann")
        assert paused.version > before.version
        assert store.lanes() == {LANE: paused}
        assert [paused.stopped(until - HOUR), paused.stopped(until)] == [True, False]

    def test_settings_never_touch_a_pause(self, store: Store) -> None:
        """Whoever applies a file of settings does not start what an operator stopped."""
        put_lane(store)
        paused = store.pause_lane(LANE, paused=True, actor="ann", reason="outage")

        assert put_lane(store) == paused
        changed = put_lane(store, weight=3)
        assert (changed["weight"], changed.paused, changed.paused_by) == (3, True, "ann")
        assert changed.stopped(store.now() + 1000 * HOUR)

    def test_a_resumed_lane_is_as_if_it_had_never_been_paused(self, store: Store) -> None:
        """But for its version."""
        before = put_lane(store)
        store.pause_lane(LANE, paused=True, until=store.now() + HOUR, actor="ann", reason="outage")
        after = store.pause_lane(LANE, paused=False, actor="bob", reason="over")

        assert (after.paused, after.paused_until, after.pause_reason, after.paused_by) == (
            False,
            None,
            None,
            None,
        )
        assert after.settings == before.settings
        assert store.lanes() == {LANE: after}

    def test_the_same_pause_again_changes_nothing(self, store: Store) -> None:
        """Nor does the end of one that never was; another end of it does."""
        untouched = put_lane(store)
        assert store.pause_lane(LANE, paused=False, actor="ann", reason="no") == untouched
        until = store.now() + HOUR
        once = store.pause_lane(LANE, paused=True, until=until, actor="ann", reason="outage")

        assert store.pause_lane(LANE, paused=True, until=until, actor="ann", reason="outage") == once
        longer = store.pause_lane(LANE, paused=True, until=until + HOUR, actor="ann", reason="outage")
        assert longer.version > once.version

    @pytest.mark.parametrize("until", [PAST, -1000 * HOUR, None], ids=["a moment ago", "long ago", "naive"])
    def test_a_pause_until_a_time_that_is_past_is_refused(
        self, store: Store, until: timedelta | None
    ) -> None:
        """Of a lane, a pool, a group, of everything: it would stop nothing, and nobody would know."""
        before, web = put_lane(store), store.put_pool(WEB, actor="suite")
        now = store.now()
        at = now.replace(tzinfo=None) + HOUR if until is None else now + until
        words = "has no time zone" if until is None else "is past already: give a time that is to come"
        for pause in (
            partial(store.pause_lane, LANE),
            partial(store.pause_pool, "web"),
            partial(store.pause_group, LANE, "g"),
            store.pause_store,
        ):
            with pytest.raises(InvalidSetting, match=words):
                pause(paused=True, actor="ann", reason="outage", until=at)

        assert (store.lanes(), store.pools(), store.store_pause()) == ({LANE: before}, {"web": web}, None)
        assert {row.action for row in store.audit_log(limit=9).entries} == {"lane.create", "pool.create"}

    def test_an_unknown_lane_cannot_be_paused_or_deleted(self, store: Store) -> None:
        """Near names are offered."""
        put_lane(store)
        with pytest.raises(UnknownLane, match=f"did you mean {LANE}"):
            store.pause_lane("order", paused=True, actor="ops", reason="because")
        with pytest.raises(UnknownLane):
            store.delete_lane("order", actor="ops")


class LaneDeletionTests:
    """Deleted lanes."""

    @pytest.mark.parametrize(
        "start", [S.PENDING, S.CLAIMED, S.DISPATCHED, S.HELD, S.DEAD], ids=lambda state: state.label
    )
    def test_a_lane_with_jobs_to_be_done_stays(self, store: Store, start: JobState) -> None:
        """Dead ones too: somebody has yet to look at them."""
        put_lane(store)
        job_id = in_state(store, start)
        with pytest.raises(InUse, match=f'lane "{LANE}" still has live or dead jobs'):
            store.delete_lane(LANE, actor="ops")

        assert list(store.lanes()) == [LANE]
        assert find(store, job_id).state is start

    def test_a_deleted_lane_takes_no_jobs(self, store: Store) -> None:
        """Nobody knows it any more."""
        put_lane(store)
        put_lane(store, "other")
        in_state(store, S.SUCCEEDED)
        store.delete_lane(LANE, actor="ops")

        assert list(store.lanes()) == ["other"]
        [answer] = store.enqueue([job()])
        assert isinstance(answer, UnknownLane)
        assert claim(store) is None
        assert {lane for lane, _ in store.counts()} <= {"other"}
        with pytest.raises(UnknownLane):
            store.depth(LANE)

    def test_the_history_of_a_deleted_lane_stays(self, store: Store) -> None:
        """Under its name, with that of a lane of the same name that came later."""
        put_lane(store)
        old = in_state(store, S.SUCCEEDED)
        store.delete_lane(LANE, actor="ops")
        assert (find(store, old).lane, find(store, old).state) == (LANE, S.SUCCEEDED)
        put_lane(store)
        new = in_state(store, S.SUCCEEDED)

        assert {job.id for job in store.list_jobs(JobQuery(lane=LANE)).jobs} == {old, new}
        assert find(store, old).live.lane != find(store, new).live.lane

    def test_a_job_of_a_deleted_lane_does_not_go_again(self, store: Store) -> None:
        """There is nobody who would send it."""
        put_lane(store)
        job_id = in_state(store, S.CANCELLED)
        store.delete_lane(LANE, actor="ops")
        for done in (
            operate(store, Verb.RETRY, job_id, force=True),
            store.edit(job_id, payload="x", replay=True, force=True, actor="ops", reason="because"),
        ):
            assert (done.effect, done.state) == (Effect.REFUSED, S.CANCELLED)
            assert "lane was deleted" in done.text

    def test_keys_and_pauses_of_a_deleted_lane_are_gone(self, store: Store) -> None:
        """A lane of the same name begins anew."""
        put_lane(store)
        old = in_state(store, S.SUCCEEDED, key="k")
        store.pause_group(LANE, "g", paused=True, actor="ops", reason="because")
        store.pause_lane(LANE, paused=True, actor="ops", reason="because")
        store.delete_lane(LANE, actor="ops")
        lane = put_lane(store)

        assert (lane.paused, lane.version) == (False, 1)
        [new, ordered_one] = enqueue(store, job(key="k"), ordered("g"))
        assert new != old
        assert set(drain(store)) == {new, ordered_one}
        store.retire(slice_rows=100)

    def test_a_lane_is_deleted_once_its_jobs_are_done(self, store: Store) -> None:
        """Whatever it was that held it."""
        put_lane(store)
        job_id = in_state(store, S.DEAD)
        operate(store, Verb.SKIP, job_id)
        store.delete_lane(LANE, actor="ops")

        assert store.lanes() == {}
