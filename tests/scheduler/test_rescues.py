"""What a node remembers of what it recovered."""

from datetime import UTC, datetime, timedelta

from penstock.scheduler.rescues import LATELY_S, Rescues

HERE = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_rescues_are_summed_up_for_a_while_and_then_forgotten() -> None:
    rescues = Rescues()
    assert rescues.told(0.0, HERE) == {}
    rescues.note("mail", {"unknown": 2, "running": 5}, 0.0)
    rescues.note("orders", {"unknown": 1, "failed": 1}, 10.0)
    at = (HERE - timedelta(seconds=5)).isoformat()

    told = {"at": at, "lanes": ["orders", "mail"], "fates": {"unknown": 3, "failed": 1}}
    assert rescues.told(15.0, HERE) == {"recovered": told}
    assert rescues.told(LATELY_S, HERE)["recovered"]["fates"] == {"unknown": 1, "failed": 1}  # type: ignore[index]
    assert rescues.told(LATELY_S + 10, HERE) == {}


def test_an_executor_that_is_still_at_work_was_not_recovered() -> None:
    rescues = Rescues()
    rescues.note("mail", {"running": 5}, 0.0)

    assert rescues.told(1.0, HERE) == {}
