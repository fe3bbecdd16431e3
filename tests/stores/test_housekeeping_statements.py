"""What the leader does for many takes as many statements as for few."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from penstock.domain.lanes import lane
from penstock.stores.sqlite.store import SqliteStore
from tests.plans.counting import CountingConnection

HOUR = timedelta(hours=1)


def test_pauses_of_groups_that_are_over_end_together(tmp_path: Path) -> None:
    counts, clock = [], [datetime(2026, 5, 1, tzinfo=UTC)]
    with closing(SqliteStore(tmp_path / "p.db", clock=lambda: clock[0])) as store:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
        writer = store.db._writer
        for groups in (3, 30):
            for number in range(groups):
                until = clock[0] + HOUR
                store.pause_group("orders", f"g{number}", paused=True, actor="a", reason="r", until=until)
            clock[0] += 2 * HOUR
            store.db._writer = counting = CountingConnection(writer)  # type: ignore[assignment]
            store.expire(10)
            store.db._writer = writer
            counts.append(counting.statements)
            ended = [one for one in store.audit_log(limit=100).entries if one.action == "resume_group"]
            assert len([one for one in ended if one.at == clock[0]]) == groups

    assert counts[0] == counts[1]
