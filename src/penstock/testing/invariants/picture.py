"""What a call is judged by: the store as it was before, and what the call changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from penstock.domain.retry import RetrySchedule
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.moves import Change
from penstock.testing.invariants.sqlite import Tables

Changes = Mapping[int, Change]
Verdict = Callable[[Any, Changes], None]


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a lane's settings the checks need."""

    number: int
    retry: RetrySchedule
    passes: bool
    key_ttl: timedelta
    dead_retention: timedelta
    max_recoveries: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The store before a call."""

    model: Model
    tables: Tables
    lanes: Mapping[str, Rules]
    now: datetime


class Call(NamedTuple):
    """A call that was carried out: what it answered and changed, by the store's clock and by ours."""

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    changes: Changes
    now: datetime
    at: float
