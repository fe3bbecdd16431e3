"""Pieces of HTML that rows repeat, as filters: a template calls one for a fraction of what a macro costs.

A page that somebody looks at takes computing time from what is sent, and most of that is spent on rows.
"""

from datetime import datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from markupsafe import Markup, escape

from penstock.ui.words import ago, clock, stamp

NAMES: Final = 1_000  # states and lanes whose piece is kept: each row has one of a few
_NOTHING: Final = Markup("–")  # noqa: RUF001 - a dash is what it is


@lru_cache(NAMES)
def state(label: str) -> Markup:
    """Return a state, in its colour."""
    shown = escape(label)
    return Markup(f'<span class="state {shown}">{shown}</span>')  # noqa: S704 - escaped


def when(at: datetime | None, now: datetime) -> Markup:
    """Return how long ago something was or in how long it will be, with the time itself to hover over."""
    return _time(stamp(at), "data-ago", ago(at, now)) if at else _NOTHING


def ends(at: datetime, now: datetime) -> Markup:
    """Return when something ends: once that came, it says so and counts no further."""
    return _time(stamp(at), "data-ago data-ends", ago(at, now) if at > now else "now")


def exact(at: datetime | None) -> Markup:
    """Return a time, which scripts show in the reader's zone if asked to."""
    return _time(stamp(at), "data-clock", clock(at)) if at else _NOTHING


def _time(at: str, kind: str, shown: str) -> Markup:
    return Markup(f'<time datetime="{at}" title="{at}" {kind}>{shown}</time>')  # noqa: S704 - words of ours


def job_link(id_: str) -> Markup:
    """Return the way to the page of a job."""
    return Markup(f'<a class="id" href="/jobs/{quote(id_)}">{escape(id_)}</a>')  # noqa: S704 - escaped


@lru_cache(NAMES)
def lane_link(name: str) -> Markup:
    """Return the way to the page of a lane."""
    return Markup(f'<a href="/lanes/{quote(name)}">{escape(name)}</a>')  # noqa: S704 - escaped
