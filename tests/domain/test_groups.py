"""What a group is doing, and which job it waits for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.groups import MOST, Group, GroupRow, Told, behind_name, group_row, list_of_groups
from penstock.domain.job import Live
from penstock.domain.ordering import Mode, Place
from penstock.domain.standing import holder_name
from penstock.domain.states import JobState
from penstock.errors import InvalidCursor

S = JobState
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def row(arrival: int, state: JobState = S.PENDING, **fields: Any) -> Live:  # noqa: ANN401
    said = {"ord": 99, "mode": Mode.BLOCK_ON_ERROR, "due_at": NOW, **fields}
    return Live(arrival=arrival, lane=1, keep=7, state=state, grp="g", tenant=None, **said)


def shown(group: Group, **facts: Any) -> GroupRow:  # noqa: ANN401
    told = {"ids": {}, "blocked_at": {}, "paused_at": None, "waiting": 3, **facts}
    return group_row("orders", "g", group, Told(NOW, **told))


CLAIMED = row(1, S.CLAIMED, claimed_at=NOW - HOUR)
OUT = row(1, S.DISPATCHED, claimed_at=NOW - HOUR, sent_at=NOW)
AT_WORK = row(1, S.RUNNING, claimed_at=NOW - 2 * HOUR, sent_at=NOW - HOUR, started_at=NOW)
HELD = row(2, S.HELD)
DEAD = Place(99, 1)


@pytest.mark.parametrize(
    ("group", "state", "first", "blocker", "waits_for"),
    [
        (Group(), "idle", None, None, None),
        (Group(dead=DEAD), "idle", None, None, None),
        (Group(paused=True), "paused", None, None, None),
        (Group(head=row(2)), "waiting", 2, None, 2),
        (Group(head=row(2), paused=True), "paused", 2, None, 2),
        (Group(head=row(2, S.WAITING)), "waiting", 2, None, 2),
        (Group(head=OUT), "busy", 1, None, 1),
        (Group(head=AT_WORK, dead=DEAD, paused=True), "busy", 1, None, 1),
        (Group([CLAIMED], row(2)), "busy", 1, None, 1),
        (Group([CLAIMED], HELD, Place(1, 0)), "busy", 1, None, 1),
        (Group([row(3, S.CLAIMED), CLAIMED]), "busy", 1, None, 1),
        (Group(head=row(2), dead=DEAD), "blocked", 2, 1, 1),
        (Group(head=row(2), dead=DEAD, paused=True), "blocked", 2, 1, 1),
        (Group(head=row(2), dead=Place(100, 1)), "waiting", 2, None, 2),
        (Group(head=row(2, mode=Mode.NEXT_ON_ERROR), dead=DEAD), "waiting", 2, None, 2),
        (Group(head=HELD, dead=DEAD), "blocked", 2, 2, 2),
    ],
)
def test_what_a_group_is_doing(
    group: Group, state: str, first: int | None, blocker: int | None, waits_for: int | None
) -> None:
    found = None if group.first is None else group.first.arrival

    assert (group.state, found, group.blocker, group.waits_for) == (state, first, blocker, waits_for)


def test_there_is_something_to_know_of_a_group_with_jobs_or_a_pause() -> None:
    assert not Group().known
    assert all(g.known for g in (Group([CLAIMED]), Group(head=HELD), Group(dead=DEAD), Group(paused=True)))


def test_a_group_is_busy_since_its_job_was_claimed_sent_or_started() -> None:
    for job, since in ((CLAIMED, NOW - HOUR), (OUT, NOW), (AT_WORK, NOW)):
        assert shown(Group(head=job)).since == since


def test_a_group_waits_since_its_head_was_due_if_it_is() -> None:
    due, later = row(1, due_at=NOW - HOUR), row(1, due_at=NOW + HOUR)

    assert shown(Group(head=due), ids={1: "A"}) == GroupRow(
        "orders", "g", "waiting", "A", None, NOW - HOUR, 3, NOW - HOUR,
    )  # fmt: skip
    assert shown(Group(head=later))[5:8] == (None, 3, NOW + HOUR)


def test_a_group_is_blocked_since_its_blocker_is_what_it_is() -> None:
    behind_dead = shown(Group(head=row(2), dead=DEAD), ids={1: "A", 2: "B"}, blocked_at={1: NOW})
    behind_held = shown(Group(head=HELD), ids={2: "B"}, blocked_at={2: NOW - HOUR})

    assert behind_dead == GroupRow("orders", "g", "blocked", "B", "A", NOW, 3, None)
    assert behind_held == GroupRow("orders", "g", "blocked", "B", "B", NOW - HOUR, 2, None)


def test_a_group_is_paused_since_somebody_did_and_idle_since_nobody_knows() -> None:
    assert shown(Group(paused=True), paused_at=NOW).since == NOW
    assert shown(Group(paused=True), paused_until=NOW).until == NOW
    assert shown(Group(head=HELD, paused=True), paused_until=NOW).until is None, "it is blocked"
    assert shown(Group(dead=DEAD)).since is None


def test_only_so_many_are_counted_and_a_lost_job_is_named_by_its_arrival() -> None:
    assert shown(Group(head=row(2)), waiting=MOST + 1)[3:7] == ("#2", None, NOW, MOST)


def test_a_cursor_of_names_leads_back_to_them() -> None:
    names = ("l" * 63, "ü" * 127)
    cursor = seal_names(names, of="groups")

    assert unseal_names(cursor, of="groups", names=2) == names
    with pytest.raises(InvalidCursor, match="another list"):
        unseal_names(cursor, of="others", names=2)
    with pytest.raises(InvalidCursor, match="another version"):
        unseal_names(cursor, of="groups", names=1)
    with pytest.raises(InvalidCursor, match="too long"):
        unseal_names("A" * 2_000, of="groups", names=2)


def test_a_node_is_called_by_its_name_and_number() -> None:
    assert holder_name(7, "host-1") == "host-1 (node 7)"
    assert holder_name(7, None) == "node 7"


def test_a_list_goes_on_behind_a_name_that_no_group_need_have() -> None:
    cursor = behind_name("orders", "acm")

    found = unseal_names(cursor, of=list_of_groups("orders", None, blocked=False), names=2)
    assert found == ("orders", "acm")
    with pytest.raises(InvalidCursor):
        unseal_names(cursor, of=list_of_groups("orders", None, blocked=True), names=2)
