"""How many jobs a filter finds: from the counters, from the page itself, or counted up to a cap."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from penstock.domain.filters import MAX_PAGE, JobQuery, Page
from penstock.domain.states import JobState
from penstock.ports.store import Store

MOST: Final = 10_000
Counts = Mapping[tuple[str, JobState], int]


class Count(NamedTuple):
    """Jobs that match; `more`: there are others that nobody counted."""

    jobs: int
    more: bool = False


def count_of(query: JobQuery, page: Page, counts: Callable[[], Counts]) -> Count:
    """Return what is known without looking at more jobs than the page shows."""
    if _counted_anyway(query):
        found = ((lane, state, jobs) for (lane, state), jobs in counts().items())
        all_ = sum(n for lane, state, n in found if query.wants_lane(lane) and state in query.wanted)
        if all_ >= len(page.jobs):  # of lanes that are gone nobody keeps count
            return Count(all_)
    return Count(len(page.jobs), more=page.next is not None or query.after is not None)


def count_to_the_cap(store: Store, query: JobQuery) -> Count:
    """Count page after page: ten thousand jobs at most, or as many looks as that takes."""
    found, after = 0, None
    for _ in range(MOST // MAX_PAGE):
        page = store.list_jobs(replace(query, limit=MAX_PAGE, after=after))
        found, after = found + len(page.jobs), page.next
        if after is None:
            break
    return Count(found, more=after is not None)


def _counted_anyway(query: JobQuery) -> bool:
    """Whether the filter is about lanes and states alone, of which the store keeps count."""
    plain = JobQuery(lane=query.lane, states=query.states, order=query.order)
    return replace(query, line="", limit=plain.limit, after=None, payloads=False) == plain
