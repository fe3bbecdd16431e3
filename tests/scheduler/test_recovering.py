"""What a leader takes over from dead nodes, and fails to deal with."""

from datetime import timedelta

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.errors import StoreUnavailable
from penstock.ports.sink import Sink, SinkUnavailable
from penstock.ports.store import Ask, Store
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import Breakers
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import Ground
from penstock.scheduler.limits import Limits
from penstock.scheduler.outlets import Outlets
from penstock.scheduler.recovery import Recovery
from penstock.testing.sim.faults import CallFault, FaultPlan, Port
from penstock.testing.sim.world import NodeEnv, World
from tests.api.conftest import memory_store

INSTANT = timedelta(microseconds=1)


async def closed(_: str) -> Sink:
    raise SinkUnavailable("not here")


def deck_of(store: Store, env: NodeEnv) -> Deck:
    ground = Ground(store, env.executor, env.clock, env.rng, lambda _: None)
    board = Board(ground, ("none of these",))
    return Deck(ground, board, Outlets(ground, closed), Limits(ground), Breakers(ground, board))


@pytest.mark.parametrize(
    ("on_unknown", "state"), [("hold", JobState.HELD), ("requeue", JobState.PENDING)], ids=["hold", "requeue"]
)
def test_what_the_lane_says_of_unknown_fates_counts_where_its_sink_is_closed(
    on_unknown: str, state: JobState
) -> None:
    """Work that must not repeat went again when the leader could not open the sink to ask it."""
    store = memory_store()
    store.put_lane(lane("orders", sink="http", on_unknown=on_unknown), actor="test")
    id_ = Client(store).enqueue("orders", {}).id
    claim = store.claim(Ask(lane="orders", node=store.register_node("dead"), limit=1, lease=INSTANT))
    assert claim is not None
    assert store.mark_sending(claim.epoch)

    async def main(env: NodeEnv) -> None:
        deck = deck_of(store, env)
        deck.node = store.register_node("leader")
        await Recovery(deck).tick(None)

    with World(1, FaultPlan()) as world:
        world.spawn_node("leader", main)
        world.run()
    assert store.find([id_])[id_].state is state


def test_claims_that_it_cannot_deal_with_are_not_kept() -> None:
    """It does not serve their lane, asks for its settings, and is not answered: the leases must run out."""
    store, held = memory_store(), list[set[int]]()
    store.put_lane(lane("orders", sink="http"), actor="test")
    for _ in range(3):
        Client(store).enqueue("orders", {})
        assert store.claim(Ask(lane="orders", node=store.register_node("dead"), limit=1, lease=INSTANT))

    async def main(env: NodeEnv) -> None:
        deck = deck_of(store, env)
        deck.node = store.register_node("leader")
        with pytest.raises(StoreUnavailable):
            await Recovery(deck).tick(None)
        held.append(set(deck.holdings.claims))

    with World(1, FaultPlan(exact={(Port.STORE, 2): CallFault.ERROR_BEFORE})) as world:
        world.spawn_node("leader", main)
        world.run()
    assert held == [set()]
