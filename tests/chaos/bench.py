"""The set-up that most of these tests share, and the judgement at their end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.states import LIVE
from penstock.stores.connect import connect
from penstock.testing.invariants.afterwards import check_afterwards
from penstock.testing.invariants.facts import Ledger, Log
from penstock.testing.invariants.received import read_log
from tests.chaos.processes import Cluster, Listener, cluster, eventually, listening
from tests.chaos.traffic import MAIL, ORDERS, Offer, Producer

LEASE = "3s"
RETRY = ["0s", *["200ms"] * 9]
CONFIG = """
[http]
allow_networks = ["127.0.0.0/8"]
"""

# `penstock serve` that gives up sooner: python -c IMPATIENT store-url
IMPATIENT = """
import sys
from datetime import timedelta
from penstock.app import App, configure_logs, run
from penstock.config.settings import load
settings = load(None, {})
configure_logs(settings)
app = App(settings, sys.argv[1], "127.0.0.1", 0, wedged_after=timedelta(seconds=3))
app.started = lambda url: print("serves", url, flush=True)
run(app)
"""


@dataclass(slots=True)
class Bench:
    """A store, a receiver and nodes; `ledger` is what producers were told."""

    cluster: Cluster
    listener: Listener
    client: Client
    rng: Random
    ledger: Ledger = field(default_factory=Ledger)

    def producer(self, **how: Any) -> Producer:  # noqa: ANN401 - the fields of Producer
        urls = how.pop("urls", lambda: [node.url for node in self.cluster.alive()])
        return Producer(self.ledger, self.client, urls, self.rng, **how)

    async def start(self, *names: str) -> None:
        """Start nodes, all at once."""
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self.cluster.start(name))

    async def all_done(self, jobs: Sequence[Offer] = (), *, within: float) -> None:
        """Wait until every job has ended."""
        await eventually("the end of all jobs", lambda: not self.live(), within=within)
        assert len(self.ledger) >= len(jobs)

    def live(self) -> dict[str, int]:
        """Return how many jobs have not ended, by lane and state."""
        counts = self.client.counts()
        return {f"{name} {state.label}": n for (name, state), n in counts.items() if state in LIVE and n}

    def judge(self, *, others: Sequence[str] = ()) -> Log:
        """Hold everything against the promises, and return what arrived; `others` are no producer's jobs."""
        store, ids = self.client.store, [*self.ledger.accepted, *others]
        log = read_log(self.listener.log, store, self.ledger)
        check_afterwards(self.ledger, log, store, ids=ids)
        return log


@asynccontextmanager
async def bench(
    folder: Path, url: str, *, seed: int, listen: Sequence[str] = (), **settings: object
) -> AsyncIterator[Bench]:
    """Give a store with the lanes `orders` (strict order) and `mail` (none), and a receiver for both."""
    async with listening(folder, *listen) as listener, cluster(folder, url, CONFIG) as nodes:
        prepare(url, listener.url, **settings)
        with Client(url) as client:
            yield Bench(nodes, listener, client, Random(seed))  # noqa: S311 - it has to be repeatable


def prepare(url: str, target: str, **settings: object) -> None:
    """Make the tables and the lanes."""
    store = connect(url)
    store.migrate()
    common = {"sink": "http", "lease": LEASE, "retry": RETRY, "lookahead": "2s", **settings}
    store.put_lane(lane(ORDERS, target=f"{target}/orders", mode="block_on_error", **common), actor="test")
    store.put_lane(lane(MAIL, target=f"{target}/mail", **common), actor="test")
    store.close()
