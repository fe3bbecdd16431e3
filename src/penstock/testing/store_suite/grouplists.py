"""Lists of groups: what each is doing, what it waits for, and where the list goes on."""

import pytest

from penstock.domain.groups import behind_name
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Running
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import InvalidCursor, InvalidQuery
from penstock.ports.insight import GroupRow
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    PAST,
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


def _only(store: Store) -> GroupRow:
    [row] = store.list_groups().groups
    assert (row.lane, row.group) == (LANE, GROUP)
    return row


def _names(store: Store, **query: object) -> list[tuple[str, str]]:
    """Return the groups of a whole list, page after page."""
    found: list[tuple[str, str]] = []
    after = None
    while True:
        page = store.list_groups(after=after, **query)  # type: ignore[arg-type]
        found += [(row.lane, row.group) for row in page.groups]
        after = page.next
        if after is None:
            return found


class GroupListTests:
    """Groups as operators see them."""

    def test_a_group_whose_head_is_due_waits(self, store: Store) -> None:
        """To be sent, since it is due; or to be due."""
        put_lane(store)
        due = store.now() + PAST
        first, _ = enqueue(store, ordered(run_at=due), ordered())
        assert _only(store) == GroupRow(LANE, GROUP, "waiting", first, None, due, 2, due)

        later = store.now() + HOUR
        store.edit(first, actor="ops", reason="later", run_at=later)
        assert _only(store) == GroupRow(LANE, GROUP, "waiting", first, None, None, 2, later)

    def test_a_group_with_a_job_in_flight_is_busy(self, store: Store) -> None:
        """Since that was claimed, sent or started; the others wait behind it."""
        put_lane(store)
        first, *_ = enqueue(store, ordered(), ordered(), ordered())
        batch = some(claim_groups(store))
        row = _only(store)
        assert row == GroupRow(LANE, GROUP, "busy", first, None, batch.claimed_at, 2, None)
        settle(store, batch, Dispatched(HOUR))
        row = _only(store)
        assert row[:5] == (LANE, GROUP, "busy", first, None)
        assert row.since == store.find([first])[first].live.sent_at
        assert row.behind == 2

    def test_a_group_with_a_run_in_flight_is_busy_with_its_first(self, store: Store) -> None:
        """Nothing else waits."""
        put_lane(store)
        first, *_ = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store, run=2)), Running(HOUR))

        row = _only(store)
        assert (row.state, row.head, row.behind) == ("busy", first, 0)

    def test_a_group_behind_a_dead_job_is_blocked(self, store: Store) -> None:
        """Since that died."""
        put_lane(store)
        dead = in_state(store, S.DEAD, group=GROUP, mode=Mode.BLOCK_ON_ERROR)
        first, _ = enqueue(store, ordered(), ordered())

        ended = store.find([dead])[dead].finished_at
        assert _only(store) == GroupRow(LANE, GROUP, "blocked", first, dead, ended, 2, None)

    def test_a_group_whose_head_is_held_is_blocked(self, store: Store) -> None:
        """Since somebody held it; the held job itself does not wait behind."""
        put_lane(store)
        first, _ = enqueue(store, ordered(), ordered())
        before = store.now()
        operate(store, Verb.HOLD, first)

        row = _only(store)
        assert (row.state, row.head, row.blocker, row.behind) == ("blocked", first, first, 1)
        assert row.since is not None
        assert before <= row.since <= store.now()

    def test_a_dead_job_that_nobody_waits_for_blocks_nothing(self, store: Store) -> None:
        """The group is idle, or goes on with jobs that do not mind."""
        put_lane(store)
        in_state(store, S.DEAD, group=GROUP, mode=Mode.BLOCK_ON_ERROR)
        assert _only(store) == GroupRow(LANE, GROUP, "idle", None, None, None, 0, None)

        [first] = enqueue(store, ordered(mode=Mode.NEXT_ON_ERROR))
        row = _only(store)
        assert (row.state, row.head, row.blocker) == ("waiting", first, None)
        assert store.list_groups(blocked=True).groups == []

    def test_a_paused_group_says_since_and_until_when(self, store: Store) -> None:
        """With or without jobs; one that is blocked as well is blocked."""
        put_lane(store)
        before = store.now()
        store.pause_group(LANE, GROUP, paused=True, actor="ops", reason="because")
        row = _only(store)
        assert row[:5] == (LANE, GROUP, "paused", None, None)
        assert row.since is not None
        assert before <= row.since <= store.now()
        assert row.until is None
        until = before.replace(microsecond=0) + HOUR
        store.pause_group(LANE, GROUP, paused=True, actor="ops", reason="because", until=until)
        assert _only(store).until == until

        first, _ = enqueue(store, ordered(), ordered())
        row = _only(store)
        assert (row.state, row.head, row.behind, row.next_at) == ("paused", first, 2, None)
        operate(store, Verb.HOLD, first)
        assert _only(store).state == "blocked"

    def test_groups_that_nobody_knows_anything_of_are_not_listed(self, store: Store) -> None:
        """What ended well leaves nothing, and what keeps no order is in no group."""
        put_lane(store)
        in_state(store, S.SUCCEEDED, group=GROUP, mode=Mode.BLOCK_ON_ERROR)
        in_state(store, S.DEAD, group="plain")
        enqueue(store, job(group="another"))
        store.pause_group(LANE, "third", paused=True, actor="ops", reason="because")
        store.pause_group(LANE, "third", paused=False, actor="ops", reason="over")

        assert _names(store) == []

    def test_groups_are_listed_by_lane_and_name(self, store: Store) -> None:
        """All of them, or those of one lane."""
        for lane in ("b", "a", "c"):
            put_lane(store, lane)
        enqueue(store, *(ordered(group, lane=lane) for lane in "abc" for group in ("2", "1", "Z", "ä")))

        names = ["1", "2", "Z", "ä"]
        assert _names(store) == [(lane, name) for lane in "abc" for name in names]
        assert _names(store, lane="b") == [("b", name) for name in names]
        assert _names(store, lane="d") == []
        for limit in (1, 3, 4, 11, 12):
            assert _names(store, limit=limit) == [(lane, name) for lane in "abc" for name in names]
            assert _names(store, limit=limit, lane="c") == [("c", name) for name in names]

    def test_a_group_is_found_by_its_name(self, store: Store) -> None:
        """In one lane, or in every lane that has one."""
        for lane in ("a", "b", "c"):
            put_lane(store, lane)
        enqueue(store, *(ordered(group, lane=lane) for lane in "ac" for group in ("g", "h")))

        assert _names(store, group="g") == [("a", "g"), ("c", "g")]
        assert _names(store, group="g", limit=1) == [("a", "g"), ("c", "g")]
        assert _names(store, group="h", lane="c") == [("c", "h")]
        assert _names(store, group="h", lane="b") == []
        assert _names(store, group="g", blocked=True) == []

    def test_blocked_groups_are_listed_alone(self, store: Store) -> None:
        """Those behind dead jobs and those behind held ones, in one order."""
        put_lane(store)
        for group in ("g4", "g2"):
            in_state(store, S.DEAD, group=group, mode=Mode.BLOCK_ON_ERROR)
        [held, *_] = enqueue(store, *(ordered(f"g{n}") for n in (3, 1, 2, 4, 5)))
        operate(store, Verb.HOLD, held)

        for limit in (1, 2, 50):
            assert _names(store, blocked=True, limit=limit) == [(LANE, name) for name in ("g2", "g3", "g4")]
        assert _names(store, blocked=True, lane="another") == []
        assert len(_names(store)) == 5

    def test_a_group_is_blocked_only_as_long_as_it_waits(self, store: Store) -> None:
        """A held job behind another one does not block yet, a resolved one no longer."""
        put_lane(store)
        first, second = enqueue(store, ordered(), ordered())
        operate(store, Verb.HOLD, second)
        assert _names(store, blocked=True) == []
        operate(store, Verb.SKIP, first)
        assert _names(store, blocked=True) == [(LANE, GROUP)]
        operate(store, Verb.RELEASE, second)
        assert _names(store, blocked=True) == []

    def test_many_groups_that_are_not_blocked_do_not_hide_one_that_is(self, store: Store) -> None:
        """A page may be short; following the cursors finds it."""
        put_lane(store)
        enqueue(store, *(ordered(f"g{n:03}", mode=Mode.NEXT_ON_ERROR) for n in range(250)))
        while (batch := claim_groups(store)) is not None:
            settle(store, batch, Dead(Reason.EXHAUSTED, "no"))
        enqueue(store, *(ordered(f"g{n:03}", mode=Mode.NEXT_ON_ERROR) for n in range(250)))
        [last] = enqueue(store, ordered("last"))
        operate(store, Verb.HOLD, last)

        assert _names(store, blocked=True, limit=1) == [(LANE, "last")]

    def test_no_more_than_a_thousand_are_counted(self, store: Store) -> None:
        """Behind a job, and before one."""
        put_lane(store)
        job_ids = enqueue(store, *(ordered() for _ in range(1010)))

        assert _only(store).behind == 1_000
        before = [standing.before for id_ in job_ids[998:1004] if (standing := store.standing(id_))]
        assert before == [998, 999, 1000, 1000, 1000, 1000]

    def test_a_cursor_of_another_list_is_refused(self, store: Store) -> None:
        """And so is a page that nobody can show."""
        put_lane(store)
        enqueue(store, ordered("a"), ordered("b"))
        cursor = store.list_groups(limit=1).next
        assert cursor is not None

        assert len(store.list_groups(after=cursor).groups) == 1
        with pytest.raises(InvalidCursor, match="another list"):
            store.list_groups(after=cursor, lane=LANE)
        with pytest.raises(InvalidCursor, match="another list"):
            store.list_groups(after=cursor, blocked=True)
        with pytest.raises(InvalidCursor, match="damaged"):
            store.list_groups(after=cursor[:-2])
        for limit in (0, 501):
            with pytest.raises(InvalidQuery, match="limit"):
                store.list_groups(limit=limit)

    def test_the_longest_names_are_listed(self, store: Store) -> None:
        """Their cursors are taken."""
        lane = "l" * 63
        put_lane(store, lane)
        groups = ["ü" * 127, "ü" * 127 + "x"]
        enqueue(store, *(ordered(group, lane=lane) for group in groups))

        assert _names(store, limit=1) == [(lane, group) for group in groups]

    def test_a_list_goes_on_behind_any_name(self, store: Store) -> None:
        """Names are in the order of their bytes, so those that begin alike stand together."""
        put_lane(store)
        put_lane(store, "other")
        names = ("acme-1", "acme", "Acme", "acn", "é", "ac")
        enqueue(store, *(ordered(group=name) for name in names), ordered(lane="other", group="acme-2"))

        page = store.list_groups(lane=LANE, after=behind_name(LANE, "acm"), limit=3)
        assert [row.group for row in page.groups] == ["acme", "acme-1", "acn"]
