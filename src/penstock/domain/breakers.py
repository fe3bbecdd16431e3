"""Circuit breakers: when calls to a target are left alone, and when they are tried again.

A target is a scheme, host and port. Failures in a row open its breaker for a while; when that is over one
call at a time is let through (`trial`), and the first success closes it. Apart from that a target may ask to
be left alone for some time: that is no failure, and a success does not shorten it. An operator may
pause it, too.
"""

import json
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.domain.pauses import Pause

SHORTEST_REST: Final = timedelta(seconds=2)
RESET: Final = "target.reset"
LONGEST_REST: Final = timedelta(seconds=30)
KEPT: Final = timedelta(days=1)
"""What nobody added to for so long is forgotten: failures a day apart are not in a row."""


class Target(NamedTuple):
    """What is known of a target (scheme, host and port): its breaker, until when to go slow, who paused it.

    `state` is `closed`, `open` (nothing is sent before `until`) or `trial` (one at a time). The
    failures of one that is closed count `until` then.
    """

    name: str
    state: str = "closed"
    failures: int = 0
    opened_at: datetime | None = None
    until: datetime | None = None
    slow_until: datetime | None = None
    pause: Pause | None = None

    @property
    def troubled(self) -> bool:
        """Whether it is to be treated otherwise than any other target."""
        return self.state != "closed" or self.slow_until is not None or self.pause is not None

    def at(self, now: datetime) -> "Target":
        """Return it as it stands at this time: what is over has passed."""
        slow = self.slow_until if self.slow_until is not None and now < self.slow_until else None
        pause = None if self.pause is None or self.pause.over(now) else self.pause
        found = self._replace(slow_until=slow, pause=pause)
        over = self.until is not None and now >= self.until
        if self.state == "closed":
            return found._replace(failures=0 if over else self.failures, until=None)
        return found._replace(state="trial") if over else found

    def rest(self, now: datetime) -> timedelta | None:
        """Return after how long to look again if nothing at all is to be sent to it; None = something may be.

        Whatever it asked for, somebody may end that by hand: jobs are not put away for longer than a while.
        """
        if self.pause is not None and not self.pause.over(now):
            return _look_again(self.pause, now)
        if self.slow_until is not None and now < self.slow_until:
            return min(self.slow_until - now, LONGEST_REST)
        if self.state == "open" and self.until is not None and now < self.until:
            return self.until - now
        return None


def facts(target: Target) -> str:
    """Return a target's breaker as the audit log shows it."""
    return json.dumps({"target": target.name, "breaker": target.state, "failures": target.failures})


class Note(NamedTuple):
    """How calls to a target went since the last note, and what its breaker does about it."""

    failed: int
    ok: int
    trip_after: int
    open_for: timedelta
    slow_for: timedelta


def noted(target: Target, note: Note, *, now: datetime) -> Target:
    """Return the target after a note; a success among failures counts as the last word."""
    target = target.at(now)
    if note.slow_for > timedelta(0):
        slow_until = now + note.slow_for
        target = target._replace(slow_until=max(slow_until, target.slow_until or slow_until))
    if note.ok:
        return Target(target.name, slow_until=target.slow_until)
    target = target._replace(failures=target.failures + note.failed)
    closed = target.state == "closed"
    if note.failed and (target.state == "trial" or (closed and target.failures >= note.trip_after)):
        return target._replace(state="open", opened_at=now, until=now + note.open_for)
    return target._replace(until=now + KEPT) if closed and target.failures else target


def forgotten(target: Target, *, now: datetime) -> bool:
    """Say whether nothing that is known of the target matters any more."""
    since = now if target.state == "closed" else now - KEPT
    return all(at is None or at < since for at in (target.until, target.slow_until))


def _look_again(pause: Pause, now: datetime) -> timedelta:
    """Return when a job that waits for a pause comes again: it may be resumed at any time.

    After as long as the pause has lasted: soon at first, seldom when many jobs may have gathered.
    """
    rest = min(max(now - pause.at, SHORTEST_REST), LONGEST_REST)
    return rest if pause.until is None else min(rest, pause.until - now)
