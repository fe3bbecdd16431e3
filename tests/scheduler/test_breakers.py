"""What a node does for jobs whose target is left alone, and when that is over."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import pytest

from penstock import Client
from penstock.domain.breakers import Target
from penstock.domain.job import Claimed, Job
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Accepted, Receipt, Throttled, TryAgain, Unknown
from penstock.domain.pauses import Pause
from penstock.domain.states import JobState, Verb
from penstock.errors import StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import MOST_KEPT, TRIP_AFTER, Breakers
from penstock.scheduler.ground import Ground
from penstock.testing.sim.faults import CallFault, FaultPlan, Port
from penstock.testing.sim.world import NodeEnv, World
from tests.api.conftest import memory_store

HOUSE = "http://house.example"
SOON, LATER = timedelta(seconds=30), timedelta(hours=1)


def _breakers(store: Store, target: Target | None = None) -> Breakers:
    """Return the breakers of a node that knows of a target, a paused one unless told otherwise."""
    ground = Ground(store, ThreadExecutor(1), SystemClock(), Random(1), lambda _: None)  # noqa: S311
    board = Board(ground)
    board.targets[HOUSE] = target or Target(HOUSE, pause=Pause("ann", "they move", store.now()))
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


def in_a_world(
    main: Callable[[Breakers], Awaitable[None]], store: Store, fault: CallFault = CallFault.ERROR_BEFORE
) -> None:
    """Run something with a node's breakers; the first call of the store fails, before it has an effect."""

    async def run(env: NodeEnv) -> None:
        ground = Ground(store, env.executor, env.clock, env.rng, lambda _: None)
        await main(Breakers(ground, Board(ground)))

    with World(1, FaultPlan(exact={(Port.STORE, 1): fault})) as world:
        world.spawn_node("a", run)
        world.run()


def test_jobs_of_a_resumed_target_go_when_the_store_is_back() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    client = Client(store)
    id_ = client.enqueue("orders", {}, run_at=store.now() + SOON).id

    async def main(breakers: Breakers) -> None:
        breakers.board.targets[HOUSE] = Target(HOUSE, pause=Pause("ann", "they move", store.now()))
        breakers.keep(HOUSE, _kept(client.get(id_)), store.now() + SOON)
        breakers.board.targets.clear()
        with pytest.raises(StoreUnavailable):
            await breakers.tell()
        assert client.get(id_).live.due_at > store.now()
        assert await breakers.tell() is False

    in_a_world(main, store)
    assert client.get(id_).live.due_at <= store.now()


def test_a_target_that_asked_to_be_left_alone_is_also_when_the_store_was_away_just_then() -> None:
    store = memory_store()

    async def main(breakers: Breakers) -> None:
        breakers.note(HOUSE, Throttled(after=LATER))
        with pytest.raises(StoreUnavailable):
            await breakers.tell()
        assert await breakers.tell() is False

    in_a_world(main, store)
    assert store.targets()[HOUSE].slow_until is not None


def test_a_success_is_told_after_failures_whose_answer_was_lost() -> None:
    """They may be on record, and would be in a row with the next ones."""
    store = memory_store()

    def failures() -> int:
        look = store.mark_target(HOUSE, failed=0, ok=0, trip_after=9, open_for=LATER, slow_for=timedelta(0))
        return look.failures

    async def main(breakers: Breakers) -> None:
        breakers.note(HOUSE, TryAgain("again"))
        with pytest.raises(StoreUnavailable):
            await breakers.tell()
        assert failures() == 1
        breakers.note(HOUSE, Accepted())
        assert await breakers.tell() is False

    in_a_world(main, store, CallFault.ERROR_AFTER)
    assert failures() == 0


@pytest.mark.parametrize("after", [Accepted(), TryAgain("again")], ids=["more of it", "a failure"])
def test_a_success_is_told_again_unless_a_failure_came_after_it(after: Receipt) -> None:
    store = memory_store()
    store.mark_target(HOUSE, failed=1, ok=0, trip_after=1, open_for=LATER, slow_for=timedelta(0))

    async def main(breakers: Breakers) -> None:
        breakers.board.targets = store.targets()
        breakers.note(HOUSE, Accepted())
        with pytest.raises(StoreUnavailable):
            await breakers.tell()
        breakers.note(HOUSE, after)
        assert await breakers.tell() is False

    in_a_world(main, store)
    assert (HOUSE in store.targets()) == isinstance(after, TryAgain)


@pytest.mark.parametrize("state", ["open", "closed"], ids=["its breaker", "its slow-down"])
async def test_jobs_go_at_once_when_somebody_ends_by_hand_what_keeps_them(state: str) -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    until = store.now() + LATER
    slow_until = until if state == "closed" else None
    client = Client(store)
    breakers = _breakers(store, Target(HOUSE, state, 20, store.now(), until, slow_until))
    comes, soon = (client.enqueue("orders", {}, run_at=store.now() + wait).id for wait in (SOON, SOON / 10))
    for id_ in (comes, soon):
        breakers.keep(HOUSE, _kept(client.get(id_)), store.now() + SOON)

    assert await breakers.tell() is None
    breakers.board.targets.clear()
    assert await breakers.tell() is False

    assert client.get(comes).live.due_at <= store.now()
    assert not client.timeline(soon).audit  # it comes by itself


async def test_while_one_call_is_tried_the_others_wait_the_longer_the_longer_it_takes() -> None:
    """Thousands may be due: each look at them costs a claim."""
    store = memory_store()
    breakers, now = _breakers(store, Target(HOUSE, "trial", 20)), store.now()
    seconds = [0, 0, 1, 3, 60]
    waits = [breakers.wait(HOUSE, now + timedelta(seconds=after)) for after in seconds]
    assert waits == [None, *(timedelta(seconds=wait) for wait in (1, 1, 3, 5))]

    breakers.not_tried(HOUSE)
    assert breakers.wait(HOUSE, now) is None


@pytest.mark.parametrize(
    ("answer", "state"),
    [(Unknown("no answer within 15 s"), "trial"), (TryAgain("not in time"), "trial"), (Accepted(), None)],
)
async def test_what_a_node_did_not_hear_in_its_sleep_is_not_held_against_a_target(
    answer: Receipt, state: str | None
) -> None:
    store = memory_store()
    breakers = _breakers(store, Target(HOUSE, "trial", 20))
    store.mark_target(HOUSE, failed=20, ok=0, trip_after=20, open_for=timedelta(0), slow_for=timedelta(0))

    breakers.note(HOUSE, answer, asleep=True)
    await breakers.tell()

    known = breakers.board.targets.get(HOUSE)
    assert (known and known.state) == state  # what it heard counts
    assert breakers.wait(HOUSE, store.now()) is None  # and another call may be tried


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


async def test_failures_with_successes_in_between_are_not_in_a_row() -> None:
    """They were told to the store, and what came between was not: the breaker opened after the twentieth."""
    store = memory_store()
    breakers = _breakers(store)
    breakers.board.targets.clear()
    for _ in range(2 * TRIP_AFTER):
        for answer in (TryAgain("503"), Accepted()):
            breakers.note(HOUSE, answer)
            await breakers.tell()

    assert not store.targets()
    breakers.note(HOUSE, Accepted())
    assert await breakers.tell() is None  # of a target that is well there is nothing to tell
