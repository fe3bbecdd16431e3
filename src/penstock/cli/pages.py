"""The jobs of a list, page after page, and how they are printed."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import click

from penstock.cli.options import note
from penstock.cli.render import ago, on_terminal, print_table
from penstock.client import Client
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import Job
from penstock.domain.queries import Filters, job_query
from penstock.empty import why_empty
from penstock.wire import encode, job_object


class Pages:
    """The jobs of a list, page after page; `next` is where it goes on once they were all taken."""

    def __init__(self, client: Client, filters: Filters, *, limit: int | None, after: str | None) -> None:
        self.next, self._begins = after, after is None
        self._client, self._filters, self._left = client, filters, limit

    def __iter__(self) -> Iterator[Job]:
        while self._left != 0:
            size = MAX_PAGE if self._left is None else min(MAX_PAGE, self._left)
            filters: Filters = {**self._filters, "limit": size, "after": self.next}
            page = self._client.list(**filters)
            yield from page.jobs
            self.next = page.next
            if self._left is not None:
                self._left -= len(page.jobs)
            if page.next is None:
                return

    def why_empty(self) -> str | None:
        """Return what may be wrong with the filters of a list that has nothing at all."""
        if not self._begins:
            return None
        store = self._client.store
        return why_empty(store, job_query(self._filters, now=store.now))


def print_pages(pages: Pages, now: datetime, *, payloads: bool, as_json: bool, empty: str) -> None:
    """Print the jobs of a list, and how to go on; `empty` is what a person is told when there are none."""
    if as_json:
        _print_json(pages, payloads=payloads)
        return
    _print_table(pages, now, empty)
    if pages.next is not None:
        note(f"there are more: add --after {pages.next}")


def _print_json(pages: Pages, *, payloads: bool) -> None:
    """Write the document as the jobs come: there may be millions; of a list that is refused, nothing."""
    begin, hint = '{"jobs":[', ""
    before = begin
    for job in pages:
        click.echo(before + encode(job_object(job, payload=payloads)), nl=False)
        before = ","
    rest = before if before is begin else ""
    if rest and (why := pages.why_empty()):
        hint = f',"hint":{encode(why)}'
    click.echo(f'{rest}],"next":{encode(pages.next)}{hint}}}')


def _print_table(pages: Pages, now: datetime, empty: str) -> None:
    head = ["id", "state", "lane", "group", "when", "attempt", "why"]
    jobs = iter(pages)
    while rows := [_row(job, now) for job in islice(jobs, MAX_PAGE)]:
        print_table(head, rows)
        empty = ""
    if empty:
        note(pages.why_empty() or empty)


def _row(job: Job, now: datetime) -> tuple[object, ...]:
    live = job.live
    at = job.finished_at or live.due_at
    when = ago(at, now) if on_terminal() else at
    why = ": ".join(text for text in (live.reason, job.error) if text)
    return job.id, job.state.label, job.lane, job.group, when, live.attempt, why or None
