"""One seed's world: stores for the actors, a plain one for the test, and a ledger of what they did."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import psycopg

from penstock.domain.job import Claim, Enqueued, NewJob
from penstock.domain.lanes import lane as lane_of
from penstock.domain.outcomes import Outcome, Succeeded
from penstock.domain.states import TERMINAL, JobState, Verb
from penstock.ports.store import Done, Settled
from penstock.stores.postgres.database import PostgresDatabase
from penstock.stores.postgres.hotpath import PostgresHotPath
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.database import Row
from penstock.stores.sql.store import SqlStore
from penstock.testing.store_suite.factories import LANE, claim, claim_groups, ids
from tests.interleave.stepping import Stage, SteppedConnection
from tests.model.databases import empty, quick, restarted
from tests.model.invariants import broken
from tests.servers import Server

ACTORS = 5
Act = Callable[["World", SqlStore], None]
Scenario = Callable[["World"], Iterator[Sequence[Act]]]

# Looked for after every commit: what is never true of what is committed, not even for a moment.
WATCH = b"""
    WITH open AS (
      SELECT c.id, c.lane, u.arrival, u.grp
        FROM penstock.claims c
       CROSS JOIN LATERAL unnest(c.arrivals, c.grps) WITH ORDINALITY u(arrival, grp, place)
       WHERE c.settled IS NULL OR get_byte(c.settled, octet_length(c.settled) - 1 - ((place - 1) / 8)::int)
             >> ((place - 1) % 8)::int & 1 = 0),
    places AS (
      SELECT arrival FROM open UNION ALL SELECT arrival FROM penstock.jobs
      UNION ALL SELECT arrival FROM penstock.dead UNION ALL SELECT arrival FROM penstock.history)
    SELECT format('group %s is in %s claims', grp, count(DISTINCT id)) FROM open WHERE grp IS NOT NULL
     GROUP BY lane, grp HAVING count(DISTINCT id) > 1
    UNION ALL
    SELECT format('job %s is in %s places', c.id, count(p.arrival))
      FROM penstock.contexts c LEFT JOIN places p USING (arrival)
     GROUP BY c.id HAVING count(p.arrival) <> 1"""


class RolledBackError(Exception):
    """The caller gave up its transaction."""


@dataclass(frozen=True)
class Bench:
    """What all seeds share: one database, a connection per actor, one to look, a store nobody steps."""

    plain: SqlStore
    stores: Sequence[SqlStore]
    monitor: psycopg.Connection[Row]

    def play(self, scenario: Scenario, seed: int) -> None:
        """Play one interleaving of a scenario and hold it to what must be true."""
        empty(self.plain)
        hot = PostgresHotPath
        world = World(
            restarted(self.plain, hot()), [restarted(s, hot()) for s in self.stores], self.monitor, seed
        )
        try:
            world.play(scenario)
        except Exception as error:
            raise InterleavingError(scenario, seed, world.stage.trace) from error


class InterleavingError(AssertionError):
    """An interleaving broke something; the message says which one and how to see it again."""

    def __init__(self, scenario: Scenario, seed: int, trace: Sequence[str]) -> None:
        again = f"INTERLEAVE_SEED={seed} .venv/bin/pytest tests/interleave -k {scenario.__name__}"
        super().__init__("\n".join([f"{scenario.__name__} fails with seed {seed}; again: {again}", *trace]))
        self.seed = seed


@contextmanager
def bench(server: Server) -> Iterator[Bench]:
    """Give a bench on a database of its own; deadlocks are looked for soon, they are part of the plan."""
    with server.database() as url, ExitStack() as stack:
        address = quick(server, url, deadlock_timeout="15ms")
        plain = stack.enter_context(closing(PostgresStore(address)))
        plain.migrate()
        plain.put_lane(lane_of(LANE, key_ttl="0s", dead_retention="0s"), actor="test")
        stores = []
        for _ in range(ACTORS):
            database = PostgresDatabase(address, max_connections=1, connection_class=SteppedConnection)
            stack.callback(database.close)
            stores.append(SqlStore(database, PostgresHotPath(), plain.ids, plain.migrations))
        monitor = stack.enter_context(psycopg.connect(address, autocommit=True))
        yield Bench(plain, stores, monitor)


@dataclass
class World:
    """What one interleaving is about."""

    plain: SqlStore
    stores: Sequence[SqlStore]
    monitor: psycopg.Connection[Row]
    seed: int
    known: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    begun: dict[str, int] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311
        self.stage = Stage(self.seed, self.monitor, after_commit=self.watch)

    def play(self, scenario: Scenario) -> None:
        story = scenario(self)
        acts = next(story)
        self.plain.lanes()
        for store in self.stores:
            store._lanes = self.plain._lanes  # or every first call would be about that
        actors = self.stage.run([self._named(i, act) for i, act in enumerate(acts)])
        for actor in actors:
            if actor.error is not None:
                raise actor.error
        assert broken(self.plain) == []
        next(story, None)
        self.drain()
        assert broken(self.plain) == []
        assert self.unfinished() == []
        assert max(self.ends.values(), default=0) <= 1, f"ended twice: {self.ends}"

    def _named(self, index: int, act: Act) -> tuple[str, Callable[[], None]]:
        store = self.stores[index]
        return f"{index} {act.__name__}", lambda: act(self, store)

    def watch(self) -> None:
        wrong = [row[0] for row in self.monitor.execute(WATCH)]
        assert wrong == []

    # -- what the test and the actors do, with a line in the ledger for each

    def enqueue(self, *jobs: NewJob, store: SqlStore | None = None) -> list[str]:
        """Enqueue jobs; return the ids of those that are new."""
        answers = (store or self.plain).enqueue(jobs)
        made = [answer.id for answer in answers if isinstance(answer, Enqueued) and not answer.duplicate]
        self.known += made
        self.arrived |= dict.fromkeys(made, self.stage.step)
        return made

    def claim(
        self,
        store: SqlStore | None = None,
        *,
        ordered: bool = True,
        limit: int = 10,
        run: int = 1,
        node: int = 1,
    ) -> Claim | None:
        """Claim groups, or jobs of no group, and note what goes out."""
        begun = self.stage.step
        take = claim_groups if ordered else claim
        batch = take(store or self.plain, limit=limit, run=run, node=node)
        self.sent += ids(batch)
        self.begun |= dict.fromkeys(ids(batch), begun)
        return batch

    def settle(
        self, batch: Claim, outcomes: Mapping[int, Outcome] | None = None, *, store: SqlStore | None = None
    ) -> Settled:
        """Settle and count what ended by it."""
        settled = (store or self.plain).settle(batch, outcomes)
        for claimed in batch.jobs:
            outcome = Succeeded() if outcomes is None else outcomes.get(claimed.job.arrival)
            if claimed.job.arrival in settled.applied and isinstance(outcome, Succeeded):
                assert claimed.context is not None
                self.ends[claimed.context.id] += 1
        return settled

    def operate(self, verb: Verb, id_: str, *, store: SqlStore | None = None, force: bool = False) -> Done:
        [done] = (store or self.plain).operate(verb, [id_], actor="ops", reason="because", force=force)
        return done

    def state(self, id_: str) -> JobState:
        return self.plain.find([id_])[id_].state

    def drain(self) -> None:
        """Let one worker that nobody disturbs send all that is left."""
        while batch := self.claim(ordered=False) or self.claim():
            self.settle(batch)

    def unfinished(self) -> list[tuple[str, str]]:
        found = self.plain.find(self.known)
        missing = [(id_, "lost") for id_ in self.known if id_ not in found]
        return missing + [(id_, job.state.label) for id_, job in found.items() if job.state not in TERMINAL]
