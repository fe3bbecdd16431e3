"""The log of a receiver (`penstock listen --log`) as the invariants read it.

A receiver knows nothing of claims. When each job was claimed the store tells: from the claim to the end of
each try on record, and of the one that ended it. A message that arrives while its job is claimed belongs to
that claim, and a claim sends once. What is left over was sent for an earlier claim by a node that had lost it
and did not know it yet: it is `stale`. What no claim explains is counted to one that has sent already.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.domain.job import Job
from penstock.ports.store import Store, Timeline
from penstock.testing.invariants.facts import Delivery, Ledger, Log


@dataclass(slots=True)
class Window:
    """When a job was in the hands of one claim; `until` None = it still is. `sent` once something came."""

    epoch: int
    since: datetime
    until: datetime | None
    sent: bool = False

    def holds(self, at: datetime, slack: timedelta) -> bool:
        """Say whether the claim was in force at that time."""
        return self.since - slack <= at and (self.until is None or at <= self.until + slack)


def read_log(path: Path, store: Store, ledger: Ledger, *, slack: timedelta = timedelta(0)) -> Log:
    """Return what arrived at a receiver; `slack` is what its clock and the store's may differ by."""
    return log_of(read_lines(path), store, ledger, slack=slack)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return what the receiver wrote about requests of Penstock, in order."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["id"] is not None]


def log_of(
    lines: Sequence[Mapping[str, Any]], store: Store, ledger: Ledger, *, slack: timedelta = timedelta(0)
) -> Log:
    """Return the lines as deliveries, each under the claim it was sent for."""
    jobs = store.find(sorted({line["id"] for line in lines}))
    windows = {id_: _windows(job, store.timeline(id_)) for id_, job in jobs.items()}
    texts = {id_: _texts(ledger, store, job) for id_, job in jobs.items()}
    log = Log()
    for number, line in enumerate(lines):
        job, at = jobs.get(line["id"]), datetime.fromisoformat(line["time"])
        window, stale = _sent_for(windows.get(line["id"], []), at, slack)
        log.append(
            Delivery(
                job=line["id"],
                send=line["send"],
                epoch=0 if window is None else window.epoch,
                lane=line["lane"],
                group=job.live.grp if job is not None else line["group"],
                sequence=line["sequence"],
                payload=texts.get(line["id"], {}).get(line["sha256"], f"sha256 {line['sha256']}"),
                at=float(number),
                stale=stale,
                taken=200 <= line["answer"] < 300,
                clock=at,
            )
        )
    return log


def _windows(job: Job, timeline: Timeline) -> list[Window]:
    found = [
        Window(row.epoch or 0, row.claimed_at, row.ended_at)
        for row in timeline.attempts
        if row.claimed_at is not None
    ]
    if job.live.claimed_at is not None:
        found.append(Window(job.live.epoch or 0, job.live.claimed_at, job.finished_at))
    return found


def _sent_for(windows: Sequence[Window], at: datetime, slack: timedelta) -> tuple[Window | None, bool]:
    """Return the claim that a message was sent for, and whether that was over by then."""
    now = [window for window in windows if window.holds(at, slack)]
    over = [window for window in windows if window.since - slack <= at]
    for window in [*now, *over]:
        if not window.sent:
            window.sent = True
            return window, window not in now
    return next(iter([*now, *over]), None), not now


def _texts(ledger: Ledger, store: Store, job: Job) -> dict[str, str]:
    """Return what a job may have sent, by its hash."""
    said = [version.payload for version in store.payload_versions(job.id)] if job.live.revision else []
    if job.id in ledger.accepted:
        said.append(ledger.accepted[job.id].payload)
    return {hashlib.sha256(text.encode()).hexdigest(): text for text in said if text is not None}
