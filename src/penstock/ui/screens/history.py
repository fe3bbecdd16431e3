"""`/history`: what ended, by day, lane and outcome, newest first, and how much of it there is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from statistics import median
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.filters import Page
from penstock.domain.states import TERMINAL, VERBS, JobState, Verb
from penstock.errors import InvalidQuery
from penstock.ui.site import AnyRequest, Site, lane_choice
from penstock.wire import job_object

PAGE: Final = 50
ENDS: Final = ("succeeded", "dead", "cancelled", "skipped", "expired")
AGAIN: Final = tuple(end for end in ENDS if end in {state.label for state in VERBS[Verb.RETRY]})
SPANS: Final = (("", "all that is kept"), ("1h", "last hour"), ("1d", "last day"), ("7d", "last week"))
DAYS: Final = 7
LANES: Final = 100


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/history", opt=needs(Scope.READ))
    async def history(request: AnyRequest) -> Response[bytes]:
        asked = {
            name: request.query_params.get(name, "").strip()
            for name in ("lane", "state", "within", "day", "after")
        }
        return await site.page(request, "history.html", lambda: _view(site.seen_by(request), asked))

    return [history]


def _view(site: Site, asked: dict[str, str]) -> dict[str, Any]:
    figures = site.figures.now()
    now: datetime = figures["at"] or site.store.now()
    line, problem = _line(asked), None
    try:
        wanted = (asked["state"],) if asked["state"] else tuple(state.label for state in TERMINAL)
        page = site.client.list(filter=line, state=wanted, limit=PAGE, after=asked["after"] or None)
    except InvalidQuery as error:
        page, problem = Page([], None), str(error)
    shown = [job_object(job, payload=False) for job in page.jobs]
    again = [end for end in AGAIN if asked["state"] in ("", end)]
    return {
        "screen": "history",
        "f": figures,
        "page": page,
        "days": [(day, [*jobs]) for day, jobs in groupby(shown, key=lambda job: job["finished_at"].date())],
        "problem": problem,
        "now": now,
        "base": {name: asked[name] for name in ("lane", "state", "within", "day")},
        "asked": asked,
        "ends": ENDS,
        "spans": SPANS,
        "recent": _recent(now.date()),
        **lane_choice(site, figures, asked["lane"]),
        "summary": _summary(shown),
        "kept": _kept(site.kept.answer("counts", site.store.counts), asked["lane"]),
        "line": f"{line} state:{asked['state'] or ','.join(ENDS)}".strip(),
        "again": again,
        "replayed": f"{line} state:{','.join(again)}".strip(),
    }


def _line(asked: Mapping[str, str]) -> str:
    terms = []
    if asked["lane"]:
        terms.append(f"lane:{asked['lane']}")
    day = _day(asked["day"])
    if day is not None:
        terms.append(f"finished>={day}T00:00:00Z finished<{day + timedelta(days=1)}T00:00:00Z")
    elif asked["within"]:
        terms.append(f"finished<{asked['within']}")
    return " ".join(terms)


def _day(text: str) -> date | None:
    """Return the day that an address names; None = it names none that there is a day after."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day < date.max else None


def _recent(today: date) -> list[tuple[str, str]]:
    """Return the last days, in UTC, with the words for them."""
    days = [today - timedelta(days=ago) for ago in range(DAYS)]
    names = ["today", "yesterday", *(f"{day:%a %d %b}" for day in days[2:])]
    return [(str(day), name) for day, name in zip(days, names, strict=True)]


def _summary(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what those on the page came to: how many of each outcome, and how long they took."""
    took = sorted(job["duration_ms"] for job in shown if job["duration_ms"] is not None)
    return {
        "outcomes": Counter(job["state"] for job in shown).most_common(),
        "median": median(took) if took else None,
        "most": took[-1] if took else None,
    }


def _kept(counts: Mapping[tuple[str, JobState], int], lane: str) -> list[dict[str, Any]]:
    """Return for each lane how many of its finished jobs are kept, by outcome; those with most first."""
    lanes: dict[str, Counter[str]] = {}
    for (name, state), jobs in counts.items():
        if state in TERMINAL and jobs > 0 and lane in ("", name):
            lanes.setdefault(name, Counter())[state.label] += jobs
    rows = sorted(lanes.items(), key=lambda item: (-item[1].total(), item[0]))
    return [
        {
            "lane": name,
            "total": ended.total(),
            "ends": [(end, ended[end]) for end in ENDS],
            "well": 1000 * ended["succeeded"] // ended.total() / 10,  # 100 only when all of them did
        }
        for name, ended in rows[:LANES]
    ]
