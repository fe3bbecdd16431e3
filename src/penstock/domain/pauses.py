"""Who stopped something, and until when: the words a person gets for why nothing is sent."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from penstock.domain.times import check_time
from penstock.errors import InvalidQuery, InvalidSetting

MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Pause:
    """Who stopped something, why, since when and until when (None = until somebody lets it go)."""

    actor: str
    reason: str
    at: datetime
    until: datetime | None = None

    def over(self, now: datetime) -> bool:
        """Say whether it has ended by itself."""
        return self.until is not None and now >= self.until

    def same(self, other: "Pause | None") -> bool:
        """Say whether nothing changes for anybody if this one takes the place of the other."""
        return other is not None and replace(other, at=self.at) == self

    def facts(self, **of: str) -> str:
        """Return it as the audit log shows it; `of` says what is paused, if it has a name."""
        until = None if self.until is None else self.until.isoformat()
        return json.dumps({**of, "paused_until": until, "pause_reason": self.reason, "paused_by": self.actor})


def check_until(until: object, now: datetime) -> None:
    """Raise InvalidSetting unless a pause until then stops anything; None = until somebody lets it go."""
    if until is None:
        return
    if not isinstance(until, datetime):
        raise InvalidSetting("until", f"{until!r} is no time: give a datetime")
    if until.utcoffset() is None:
        raise InvalidSetting("until", f"{until.isoformat()} has no time zone: add an offset, or tzinfo=UTC")
    try:
        check_time(until)
    except ValueError as error:
        raise InvalidSetting("until", f"{until.isoformat()} {error}") from None
    if until <= now:
        raise InvalidSetting("until", f"{until.isoformat()} is past already: give a time that is to come")


class Stop(NamedTuple):
    """Something that keeps a lane from sending: `what` is, say, `lane "orders" is paused`."""

    what: str
    actor: str | None = None
    reason: str | None = None
    until: datetime | None = None

    def __str__(self) -> str:
        """Return it as a person reads it."""
        by = f" by {self.actor}" if self.actor else ""
        why = f": {self.reason}" if self.reason else ""
        until = f" (until {self.until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ})" if self.until else ""
        return f"{self.what}{by}{why}{until}"


def in_force(stops: Iterable[Stop | None], now: datetime) -> str | None:
    """Return the first stop whose time is not over, in words; None = nothing stops it."""
    ahead = (stop for stop in stops if stop is not None and (stop.until is None or now < stop.until))
    return next(map(str, ahead), None)


def check_paused(targets: Collection[str]) -> None:
    """Raise InvalidQuery when more targets would be paused than nodes are to keep in mind."""
    if len(targets) > MOST:
        raise InvalidQuery("target", f"{MOST} targets are paused: resume some, or pause their lanes instead")
