"""The way in and the way to look: what applications, the command line and the API do with a store.

`Client` blocks, `AsyncClient` (async_client.py) is the same for asyncio code. Every input is checked before
anything is written, and every refusal names the field and the fix. A client may be shared by threads.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import timedelta
from functools import cached_property
from itertools import islice
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, Unpack, cast

from penstock import integrations
from penstock.admission import Admission
from penstock.bulk import Preview, new_operation, preview, verb_of
from penstock.domain import arguments
from penstock.domain.access import Who
from penstock.domain.filters import Page
from penstock.domain.gates import Explanation
from penstock.domain.intake import Content, Fields, Given, Time
from penstock.domain.job import Enqueued, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.outcomes import Running
from penstock.domain.queries import Filters, job_query
from penstock.domain.reports import Word, check_send, checked_word, delay, meaning
from penstock.domain.states import TERMINAL, Effect, JobState, Verb
from penstock.domain.ulid import Ulids
from penstock.errors import InvalidJob, NotFound, PenstockError, StoreError, StoreUnavailable
from penstock.explain import explain
from penstock.integrations.home import Home, home_of
from penstock.limited import limited
from penstock.observability.enqueueing import traced
from penstock.ports.clock import Clock, SystemClock
from penstock.ports.insight import GroupPage, GroupRow
from penstock.ports.operations import Operation, OperationPage
from penstock.ports.store import Done, Report, Reported, Store, Timeline
from penstock.stores.connect import is_api, opened

if TYPE_CHECKING:
    from penstock.stores.remote.store import RemoteStore

Answer: TypeAlias = Enqueued | PenstockError
Answers: TypeAlias = list[Answer]
Jobs: TypeAlias = list[NewJob]
BATCH: Final = arguments.MAX_BATCH
FIRST_LOOK_S: Final = 0.02
LONGEST_LOOK_S: Final = 0.5


class Client:
    """Jobs in a database: `Client("sqlite:///penstock.db")`, `Client("postgresql://user@host/db")`.

    `Client("https://host:7070", api_key="pk_…")` does the same through a node's API.
    Raises SchemaMismatch when the tables are missing or of another version. `actor` is who the audit names
    for what operators do through this client. Nodes are told of new jobs once these are committed; without
    `notify` they find them when they look the next time.
    """

    def __init__(
        self,
        store: str | Store,
        *,
        actor: str = "client",
        clock: Clock | None = None,
        notify: bool = True,
        api_key: str | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._actor = arguments.check_actor(actor)
        self.store: Store = opened(store, clock=self._clock.now, key=api_key)
        self._url = store if isinstance(store, str) else None
        self._notify = notify
        self._node = cast("RemoteStore", self.store) if isinstance(store, str) and is_api(store) else None
        self._admission = Admission(self.store, self._clock.monotonic, node=self._node is not None)
        self._ids = Ulids(lambda: int(self._clock.now().timestamp() * 1000), os.urandom)
        self._random = Random()  # noqa: S311 - spreads retries, guards nothing
        self._closed = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def actor(self) -> str:
        """Who the audit names for what is done through this client."""
        return self._actor

    @cached_property
    def home(self) -> Home | None:
        """The database that a caller's own connection must lead to; None = it is not known."""
        return home_of(self._url, self.store) if self._url else None

    def acting(self, who: Who) -> "Client":
        """Return a client on the same connections that acts for somebody, and sees no more than he may."""
        other = copy(self)
        other._actor, other.store = who.name, limited(self.store, who)  # noqa: SLF001 - a copy of ourselves
        return other

    def close(self) -> None:
        """Give up connections."""
        self._closed.set()
        self.store.close()

    # -- the way in
    def enqueue(
        self, lane: str, payload: object = None, *, connection: object = None, **fields: Unpack[Fields]
    ) -> Enqueued:
        """Write one job and return its id, or raise what is wrong with it.

        `payload` is any value that JSON can say, or `Json(text)` to be kept as it is. A `group` keeps its
        order if the job's mode, or else its lane's, is `next_on_error` or `block_on_error`. With `connection`
        (of psycopg, psycopg2, SQLAlchemy, sqlite3 or Django) the job is written in the caller's own
        transaction and appears when that commits.
        """
        [answer] = self.enqueue_many([{"lane": lane, "payload": payload, **fields}], connection=connection)
        if isinstance(answer, PenstockError):
            raise answer
        return answer

    def enqueue_many(self, jobs: Iterable[Given], *, connection: object = None) -> Answers:
        """Write many jobs, 10,000 at a time; one answer each, in order.

        A refused one leaves the others unhurt. With `connection` they are written in the caller's own
        transaction, all or none: the first one that is refused is raised.
        """
        arguments.check_several(jobs)
        if connection is not None:
            return integrations.enqueue(connection, self.admitted(jobs), home=self.home)
        answers, source = Answers(), iter(jobs)
        while part := list(islice(source, BATCH)):
            answers += self._enqueue_batch(part)
        return answers

    def enqueue_stream(self, jobs: Iterable[Given], *, batch: int = BATCH) -> Iterator[Answer]:
        """Write jobs as they come, a batch at a time, and yield the answers; memory stays flat."""
        arguments.check_several(jobs)
        return self._stream(iter(jobs), arguments.check_batch(batch))

    def _stream(self, source: Iterator[Given], batch: int) -> Iterator[Answer]:
        while part := list(islice(source, batch)):
            yield from self._enqueue_batch(part)

    def admitted(self, jobs: Iterable[Given]) -> Jobs:
        """Check jobs that go all or none and give each its id; raise what is wrong with the first bad one."""
        admitted, refused = self._admission.admit(jobs)
        for index, error in refused.items():
            if index or admitted or len(refused) > 1:
                error.add_note(f"it is jobs[{index}] of those given")
            raise error
        with traced(admitted) as carried:
            return [job if job.id else job._replace(id=self._ids()) for job in carried]

    def _enqueue_batch(self, part: Sequence[Given]) -> Answers:
        admitted, refused = self._admission.admit(part)
        with traced(admitted) as carried:
            written = self.store.enqueue(carried) if carried else []
        if admitted:
            self._wake({job.lane for job in admitted})
        if not refused:
            return written
        answers = iter(written)
        return [refused[index] if index in refused else next(answers) for index in range(len(part))]

    def _wake(self, lanes: Collection[str] = ()) -> None:
        """Tell nodes of what was committed; they look for themselves if nobody does."""
        if self._notify:
            with suppress(StoreError):
                self.store.wake(lanes)

    # -- looking
    def get(self, id: str) -> Job:  # noqa: A002
        """Return one job, live or finished, or raise NotFound."""
        known = arguments.known_id(id)
        found = self.store.find([known])
        if known not in found:
            raise NotFound("job", id)
        return found[known]

    def list(self, **filters: Unpack[Filters]) -> Page:
        """Return one page of jobs, those that have not ended first; with `order="due"` the next one to go.

        The newest comes first, of those that ended the one that ended last; `order="oldest"` goes by arrival.
        `filter` is a line of the filter language: `client.list(filter="lane:pay state:dead error:timeout")`.
        Beside it: lane, state (one or several), group, tenant, key, created, run, finished (a `Span`
        of penstock each). `after` is the `next` of the page before; `payloads=True` fetches payloads too.
        """
        return self.store.list_jobs(job_query(filters, now=self.store.now))

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return the recorded attempts and moves of one job, or raise NotFound."""
        return self.store.timeline(self.get(id).id)

    def explain(self, id: str) -> Explanation:  # noqa: A002
        """Return what holds a job: the gate, who set it, since when, until when; or raise NotFound."""
        found = explain(self.store, arguments.known_id(id))
        if found is None:
            raise NotFound("job", id)
        return found

    def groups(
        self, *, lane: str | None = None, blocked: bool = False, limit: int = 50, after: str | None = None
    ) -> GroupPage:
        """Return one page of ordered groups, by lane and name; `blocked`: only those that wait for help."""
        return self.store.list_groups(lane=lane, blocked=blocked, limit=limit, after=after)

    def group(self, lane: str, name: str) -> GroupRow:
        """Return one ordered group, or raise NotFound when nothing of it is left to be done."""
        group = arguments.check_filter("group", name)
        for row in self.store.list_groups(lane=self.lane(lane).name, group=group).groups:
            return row
        raise NotFound("group", name)

    def counts(self) -> dict[tuple[str, JobState], int]:
        """Return jobs per lane and state."""
        return self.store.counts()

    def lane(self, name: str) -> Lane:
        """Return a lane as it was at most a second ago, or raise UnknownLane."""
        return self._admission.lane(name)

    def wait(self, id: str, timeout: timedelta | float | None = None) -> Job:  # noqa: A002
        """Return the job once it has ended, or as it is when the time (a timedelta, or seconds) is up."""
        time, job = arguments.check_timeout(timeout), self.get(id)
        for pause in looks(self._clock, time):
            if job.state in TERMINAL:
                break
            if self._closed.wait(pause):
                raise StoreUnavailable("wait (the client was closed)")
            job = self.get(id)
        return job

    # -- operators
    def operate(self, verb: Verb | str, id: str, *, reason: str, force: bool = False) -> Done:  # noqa: A002
        """Carry out a verb on one job; the answer says what happened, or why nothing did.

        A verb that the job's state does not allow is no error: `effect` is `refused`, and `text` says why.
        """
        [done] = self.store.operate(
            arguments.check_verb(verb),
            [arguments.known_id(id)],
            actor=self._actor,
            reason=arguments.check_reason(reason),
            force=force,
        )
        if done.state is None:
            raise NotFound("job", id)
        if done.effect is Effect.NOW:
            self._wake()
        return done

    def cancel(self, id: str, *, reason: str, force: bool = False) -> Done:  # noqa: A002
        """End a job that was not sent; ask the holder of one that was (`force`: end it now)."""
        return self.operate(Verb.CANCEL, id, reason=reason, force=force)

    def skip(self, id: str, *, reason: str) -> Done:  # noqa: A002
        """Pass over a job that waits or is dead; its group goes on."""
        return self.operate(Verb.SKIP, id, reason=reason)

    def hold(self, id: str, *, reason: str) -> Done:  # noqa: A002
        """Park a job until it is released."""
        return self.operate(Verb.HOLD, id, reason=reason)

    def release(self, id: str, *, reason: str) -> Done:  # noqa: A002
        """Let a held job go."""
        return self.operate(Verb.RELEASE, id, reason=reason)

    def retry(self, id: str, *, reason: str, out_of_order: bool = False) -> Done:  # noqa: A002
        """Send a waiting job now, or a dead, expired or cancelled one again."""
        return self.operate(Verb.RETRY, id, reason=reason, force=out_of_order)

    def settle(self, id: str, outcome: str, *, reason: str) -> Done:  # noqa: A002
        """Say that a job that is out or held `succeeded`, or is `dead`."""
        verbs = {"succeeded": Verb.SETTLE_SUCCEEDED, "dead": Verb.SETTLE_DEAD}
        if outcome not in verbs:
            raise InvalidJob("outcome", f"{outcome!r} is neither succeeded nor dead")
        return self.operate(verbs[outcome], id, reason=reason)

    def edit(
        self,
        id: str,  # noqa: A002
        *,
        reason: str,
        run_at: Time | None = None,
        replay: bool = False,
        out_of_order: bool = False,
        **content: Unpack[Content],
    ) -> Done:
        """Change what a job sends (payload, headers, target; None takes it away) or when it is due.

        What it was before is kept. An ended job is edited together with its `replay`.
        """
        arguments.check_edit(content)
        job = self.get(id)
        checked = self._admission.content(job.lane, {"run_at": run_at, **content})
        changed: dict[str, Any] = {name: getattr(checked, name) for name in content}
        done = self.store.edit(
            job.id,
            actor=self._actor,
            reason=arguments.check_reason(reason),
            run_at=checked.run_at,
            replay=replay,
            force=out_of_order,
            **changed,
        )
        if done.effect is Effect.NOW:
            self._wake([job.lane])
        return done

    # -- operators, in bulk
    def preview(self, verb: str, filter: str) -> Preview:  # noqa: A002
        """Count what a verb on a filter would be about, up to 10,000 jobs; nothing is changed."""
        return preview(self.store, verb_of(verb), filter)

    def start(
        self,
        verb: str,
        filter: str,  # noqa: A002
        *,
        reason: str,
        rate: int | None = None,
        force: bool = False,
        key: str | None = None,
        change: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Begin a bulk operation: a verb on every job that the filter finds, carried out by whoever leads.

        Verbs: retry, cancel, skip, hold, release, edit. `rate` is how many jobs a second at most; `force`
        cancels what is out and replays out of order; `change` is what an edit does to each job before it goes
        again: payload, headers, target, or `merge`, the members of its payload that change. The same `key`
        again returns the operation that is there.
        """
        who = {"actor": self._actor, "reason": arguments.check_reason(reason)}
        new = new_operation(verb_of(verb), filter, rate=rate, force=force, key=key, change=change, **who)
        return self.store.start_operation(new)

    def operation(self, id: str) -> Operation:  # noqa: A002
        """Return how far a bulk operation is, or raise NotFound."""
        found = self.store.operation(arguments.known_id(id, "operation"))
        if found is None:
            raise NotFound("operation", id)
        return found

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return one page of bulk operations, newest first."""
        return self.store.operations(limit=limit, after=after)

    def stop(self, id: str, *, reason: str) -> Operation:  # noqa: A002
        """Stop a bulk operation where it is; what is done is done."""
        return self.store.stop_operation(
            arguments.known_id(id, "operation"), actor=self._actor, reason=arguments.check_reason(reason)
        )

    # -- executors
    def report(
        self,
        id: str,  # noqa: A002
        send: int,
        outcome: str,
        *,
        error: str | None = None,
        retryable: bool = True,
        result: object = None,
        after: timedelta | str | float | None = None,
    ) -> Reported:
        """Tell what became of one send: `started`, `heartbeat`, `succeeded`, `failed` or `deferred`.

        A failure is tried again as the lane says, or after `after` (a timedelta, seconds, or text like 5m),
        unless it is not `retryable`. A report of another send is recorded as late and changes nothing.
        """
        word = Word(outcome=outcome, error=error, retryable=retryable, result=result, after=delay(after))
        if self._node is not None:
            return self._node.tell(arguments.known_id(id), check_send(send), checked_word(word))
        job = self.get(id)
        means = meaning(word, job=job.live, lane=self.lane(job.lane), random=self._random.random())
        told = Report(id=job.id, send=check_send(send), outcome=means)
        [reported] = self.store.report([told])
        if reported.applied and not isinstance(means, Running):
            self._wake([job.lane])
        return reported


def connect(url: str, *, actor: str = "client", api_key: str | None = None) -> Client:
    """Open the store behind a URL; `api_key` is for that of a node's API."""
    return Client(url, actor=actor, api_key=api_key)


def looks(clock: Clock, timeout: timedelta | None) -> Iterator[float]:
    """Yield how many seconds to wait before each next look, longer each time, until the time is up."""
    until = None if timeout is None else clock.monotonic() + timeout.total_seconds()
    pause = FIRST_LOOK_S
    while until is None or (left := until - clock.monotonic()) > 0:
        yield pause if until is None else min(pause, left)
        pause = min(pause * 2, LONGEST_LOOK_S)
