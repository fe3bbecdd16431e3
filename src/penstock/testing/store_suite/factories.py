"""Short words for what the suite does all the time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any, Final

import pytest

from penstock.domain.job import Claim, Enqueued, Job, Live, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.lanes import lane as lane_of
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Lapsed, Outcome, Running
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import InvalidSetting
from penstock.ports.store import Ask, Done, Report, Reported, Store

LANE: Final = "orders"
GROUP: Final = "customer-1"
NODE: Final = 1
HOUR: Final = timedelta(hours=1)
PAST: Final = timedelta(seconds=-1)
ZERO: Final = timedelta(0)


def put_lane(store: Store, name: str = LANE, **settings: object) -> Lane:
    """Create a lane, or change it: settings not given are the defaults."""
    return store.put_lane(lane_of(name, **settings), actor="suite")


def job(lane: str = LANE, **fields: Any) -> NewJob:  # noqa: ANN401
    """Return an enqueue object."""
    return NewJob(lane=lane, **fields)


def ordered(group: str | None = GROUP, *, lane: str = LANE, **fields: Any) -> NewJob:  # noqa: ANN401
    """Return an enqueue object that keeps order and waits for dead predecessors, unless it says otherwise."""
    fields.setdefault("mode", Mode.BLOCK_ON_ERROR)
    return NewJob(lane=lane, group=group, **fields)


def enqueue(store: Store, *jobs: NewJob) -> list[str]:
    """Enqueue jobs that are all accepted and new; return their ids."""
    answers = store.enqueue(jobs)
    assert all(isinstance(answer, Enqueued) and not answer.duplicate for answer in answers), answers
    return [answer.id for answer in answers if isinstance(answer, Enqueued)]


def claim(store: Store, lane: str = LANE, **ask: Any) -> Claim | None:  # noqa: ANN401
    """Claim jobs that keep no order."""
    return store.claim(Ask(lane=lane, **{"node": NODE, **ask}))


def claim_groups(store: Store, lane: str = LANE, **ask: Any) -> Claim | None:  # noqa: ANN401
    """Claim heads of groups."""
    return store.claim_groups(Ask(lane=lane, **{"node": NODE, **ask}))


def pause_and_wait(store: Store, pause: Callable[[datetime], object]) -> None:
    """Pause until a moment from now and wait for it; a machine that stalls gets a longer moment."""
    now = store.now()
    if all(store.now() == now for _ in range(1000)):
        pytest.skip("the store's clock stands still")
    moment = timedelta(milliseconds=20)
    while True:
        until = store.now() + moment
        try:
            pause(until)
        except InvalidSetting:
            moment *= 4
        else:
            break
    while store.now() < until:
        pass


def some(claim: Claim | None) -> Claim:
    """Return a claim that must not be empty."""
    assert claim is not None, "nothing was claimed"
    return claim


def ids(claim: Claim | None) -> list[str]:
    """Return the ids of a claim's jobs in order; none for no claim."""
    if claim is None:
        return []
    contexts = [claimed.context for claimed in claim.jobs]
    assert None not in contexts, "a context is missing"
    return [context.id for context in contexts if context is not None]


def only(claim: Claim | None) -> Live:
    """Return the row of a claim's only job."""
    [claimed] = some(claim).jobs
    return claimed.job


def by_id(claim: Claim, outcomes: dict[str, Outcome]) -> dict[int, Outcome]:
    """Return outcomes given by id as `settle` takes them."""
    arrivals = dict(zip(ids(claim), (claimed.job.arrival for claimed in claim.jobs), strict=True))
    return {arrivals[job_id]: outcome for job_id, outcome in outcomes.items()}


def settle(store: Store, claim: Claim, outcome: Outcome) -> None:
    """Settle all of a claim's jobs alike; all must take effect."""
    arrivals = frozenset(claimed.job.arrival for claimed in claim.jobs)
    settled = store.settle(claim, dict.fromkeys(arrivals, outcome))
    assert settled.applied == arrivals


def find(store: Store, job_id: str) -> Job:
    """Return a job that must exist."""
    return store.find([job_id])[job_id]


def state(store: Store, job_id: str) -> JobState:
    """Return where a job stands."""
    return find(store, job_id).state


def report(store: Store, job_id: str, send: int, outcome: Outcome) -> Reported:
    """Report one outcome."""
    [reported] = store.report([Report(id=job_id, send=send, outcome=outcome)])
    return reported


def operate(store: Store, verb: Verb, job_id: str, *, force: bool = False) -> Done:
    """Carry out one verb on one job."""
    [done] = store.operate(verb, [job_id], actor="ops", reason="because", force=force)
    return done


def drain(store: Store, lane: str = LANE, *, limit: int = 100) -> list[str]:
    """Send everything that may go until nothing is left; return the ids in the order of sending."""
    sent: list[str] = []
    while (batch := claim(store, lane, limit=limit) or claim_groups(store, lane, limit=limit)) is not None:
        sent += ids(batch)
        store.settle(batch)
    return sent


def in_state(store: Store, wanted: JobState, *, lane: str = LANE, **fields: Any) -> str:  # noqa: ANN401
    """Bring a new job of an otherwise idle lane to a state by the shortest way; return its id.

    A job that ended, or is out, was sent once; one that is held, skipped, cancelled or expired never was.
    """
    if wanted is JobState.EXPIRED:
        fields["start_by"] = store.now() + PAST
    [job_id] = enqueue(store, job(lane, **fields))
    match wanted:
        case JobState.PENDING:
            pass
        case JobState.HELD:
            operate(store, Verb.HOLD, job_id)
        case JobState.SKIPPED:
            operate(store, Verb.SKIP, job_id)
        case JobState.CANCELLED:
            operate(store, Verb.CANCEL, job_id)
        case JobState.EXPIRED:
            store.expire(10)
        case _:
            batch = some(claim(store, lane) or claim_groups(store, lane))
            _end(store, batch, wanted)
    assert state(store, job_id) is wanted
    return job_id


def _end(store: Store, batch: Claim, wanted: JobState) -> None:
    match wanted:
        case JobState.DISPATCHED:
            settle(store, batch, Dispatched(HOUR))
        case JobState.RUNNING:
            settle(store, batch, Running(HOUR))
        case JobState.SUCCEEDED:
            store.settle(batch)
        case JobState.DEAD:
            settle(store, batch, Dead(Reason.PERMANENT, "boom"))
        case _:
            assert wanted is JobState.CLAIMED, f"there is no way to {wanted.label} yet"


def with_open_send(store: Store, wanted: JobState, *, lane: str = LANE, **fields: Any) -> str:  # noqa: ANN401
    """Bring a new job of an otherwise idle lane to a state in which send 1 is open; return its id."""
    doubt = {JobState.PENDING: Lapsed(), JobState.HELD: Lapsed(hold=True)}
    if wanted not in doubt:
        return in_state(store, wanted, lane=lane, **fields)
    [job_id] = enqueue(store, job(lane, **fields))
    settle(store, some(claim(store, lane) or claim_groups(store, lane)), doubt[wanted])
    assert state(store, job_id) is wanted
    return job_id


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make the calls at the same moment, each in a thread of its own; return their answers in order."""
    barrier = Barrier(len(calls))

    def start(call: Callable[[], Any]) -> Any:  # noqa: ANN401
        barrier.wait(timeout=30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(start, call) for call in calls]
        return [future.result(timeout=60) for future in futures]
