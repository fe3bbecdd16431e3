"""A job to ask questions about."""

from datetime import UTC, datetime
from typing import Any

from penstock.domain.job import Context, Job, Live
from penstock.domain.ordering import Mode
from penstock.domain.states import TERMINAL, JobState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def said(**fields: Any) -> Context:  # noqa: ANN401
    usual: dict[str, Any] = dict.fromkeys(Context._fields) | {
        "id": "01K", "message_group": "A-1", "sequence": 99, "run_at": NOW, "created_at": NOW, "payload": "1",
        "unchecked": False,
    }  # fmt: skip
    return Context(**usual | fields)


def job(
    state: JobState = JobState.PENDING,
    *,
    id: str = "01K",  # noqa: A002
    lane: str = "orders",
    error: str | None = None,
    at: datetime = NOW,
    context: Context | None = None,
    **fields: Any,  # noqa: ANN401
) -> Job:
    """Return a job in this state that ended at `at` if it has; `fields` are of its row."""
    row = {"due_at": NOW, "tenant": "acme", "grp": "A-1", "ord": 99, **fields}
    live = Live(arrival=7, lane=1, keep=7, mode=Mode.BLOCK_ON_ERROR, state=state, **row)
    ended = at if state in TERMINAL else None
    return Job(id, lane, state, Mode.BLOCK_ON_ERROR, live, context, finished_at=ended, error=error)
