"""What a node does for jobs whose target was paused and goes on."""

from datetime import timedelta
from random import Random

from penstock import Client
from penstock.domain.breakers import Target
from penstock.domain.job import Claimed, Job
from penstock.domain.lanes import lane
from penstock.domain.pauses import Pause
from penstock.domain.states import JobState, Verb
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import MOST_KEPT, Breakers
from penstock.scheduler.ground import Ground
from tests.api.conftest import memory_store

HOUSE = "http://house.example"
SOON, LATER = timedelta(seconds=30), timedelta(hours=1)


def _breakers(store: Store) -> Breakers:
    """Return the breakers of a node that knows of a paused target."""
    ground = Ground(store, ThreadExecutor(1), SystemClock(), Random(1), lambda _: None)  # noqa: S311
    board = Board(ground)
    board.targets[HOUSE] = Target(HOUSE, pause=Pause("ann", "they move", store.now()))
    return Breakers(ground, board)


def _kept(job: Job) -> Claimed:
    return Claimed(job.live, job.context)


async def test_jobs_of_a_resumed_target_go_at_once() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    client, breakers = Client(store), _breakers(store)
    comes, held, edited = (client.enqueue("orders", {}, run_at=store.now() + SOON).id for _ in range(3))
    for id_ in (comes, held, edited):
        breakers.keep(HOUSE, _kept(client.get(id_)), store.now() + SOON)
    client.operate(Verb.HOLD, held, reason="not this one")
    client.edit(edited, run_at=store.now() + LATER, reason="tomorrow will do")

    assert await breakers.tell() is None  # it is still paused
    breakers.board.targets.clear()
    assert await breakers.tell() is False
    assert await breakers.tell() is None

    assert client.get(comes).live.due_at <= store.now()
    assert client.timeline(comes).audit[-1].reason == f"{HOUSE} goes on"
    assert client.get(held).state is JobState.HELD
    assert client.get(edited).live.due_at > store.now() + SOON


async def test_a_job_that_was_tried_meanwhile_keeps_its_back_off() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    client, breakers = Client(store), _breakers(store)
    job = client.get(client.enqueue("orders", {}, run_at=store.now() + SOON).id)
    before = job._replace(live=job.live._replace(attempt=3))
    breakers.keep(HOUSE, _kept(before), store.now() + SOON)

    breakers.board.targets.clear()
    await breakers.tell()

    assert client.get(job.id).live.due_at == job.live.due_at


def test_no_more_is_remembered_than_is_of_use() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    client, breakers = Client(store), _breakers(store)
    job = client.get(client.enqueue("orders", {}).id)
    assert job.context is not None
    for number in range(MOST_KEPT + 9):
        other = Claimed(job.live, job.context._replace(id=str(number)))
        breakers.keep(HOUSE, other, store.now())
        breakers.keep("http://nobody.paused", other, store.now())

    assert list(breakers._kept) == [HOUSE]
    assert next(iter(breakers._kept[HOUSE])) == "9"
