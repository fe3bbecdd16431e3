"""Several connections to one PostgreSQL, stepped statement by statement in an order drawn from a seed.

Each actor is a thread with a store of its own. Its connection stops before every statement, COMMIT included,
until the stage tells it to go on, and the stage moves one actor at a time. An actor whose statement waits for
a lock is seen by `pg_blocking_pids` and left alone until whoever holds the lock has gone on. So an
interleaving is the list of choices the seed makes, and the same seed makes it again - but for the victim of a
deadlock, which PostgreSQL chooses by time.
"""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from time import monotonic
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from penstock.stores.postgres.database import PooledConnection
from penstock.stores.sql.database import Row

IDLE = TransactionStatus.IDLE
PATIENCE_S = 20.0  # a schedule that stands still for longer is a failure
GLANCE_S = 0.003  # a statement that takes longer than this may be waiting for a lock
BLOCKED = "SELECT pid FROM unnest(%s::int[]) pid WHERE cardinality(pg_blocking_pids(pid)) > 0"


class Where(Enum):
    """What an actor is at."""

    AT_GATE = auto()
    AT_WORK = auto()
    DONE = auto()


class StuckError(AssertionError):
    """Nobody can go on."""


@dataclass(eq=False)
class Actor:
    """One thread; `doing` is what it is about to say to the server, `inside` that its transaction is open."""

    name: str
    act: Callable[[], None]
    where: Where = Where.AT_WORK
    doing: str = "start"
    pid: int = 0
    error: BaseException | None = None
    inside: bool = False


class _Role(threading.local):
    """The actor whose thread this is; threads of the pool are nobody."""

    actor: Actor | None = None
    stage: "Stage | None" = None


_ROLE = _Role()


class SteppedCursor(psycopg.Cursor[Row]):
    """Says what it is about to do."""

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> "SteppedCursor":  # noqa: ANN401
        if _ROLE.actor is not None:
            _ROLE.actor.doing = " ".join(_text(query).split())[:80]
        return super().execute(query, *args, **kwargs)


class SteppedConnection(PooledConnection):
    """Stops before each statement when an actor uses it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.cursor_factory = SteppedCursor

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        actor, stage = _ROLE.actor, _ROLE.stage
        if actor is not None and stage is not None and actor.doing != "":
            actor.pid = self.pgconn.backend_pid
            stage.stop(actor)
        try:
            return super().wait(gen, *args, **kwargs)
        finally:
            if actor is not None:
                actor.inside = self.pgconn.transaction_status != IDLE
                actor.doing = "COMMIT or ROLLBACK" if actor.inside else "BEGIN"

    def commit(self) -> None:
        """Go by without a stop where there is nothing to commit: the pool asks for that all the time."""
        if self.pgconn.transaction_status != IDLE:
            super().commit()

    @contextmanager
    def pipeline(self) -> Iterator[None]:  # type: ignore[override]
        """One statement at a time, in a transaction: what the server would make of them."""
        with self.transaction():
            yield


def _text(query: Any) -> str:  # noqa: ANN401
    return query.decode() if isinstance(query, bytes) else str(query)


@dataclass
class Stage:
    """Runs actors to their ends, one statement at a time."""

    seed: int
    monitor: psycopg.Connection[Row]
    after_commit: Callable[[], None] = lambda: None
    trace: list[str] = field(default_factory=list)
    step: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311
        # Some seeds switch all the time, others let one actor go far before another one comes.
        self._stay = self._rng.choice([0.0, 0.0, 0.5, 0.8])
        self._turn = threading.Condition()
        self._free = False
        self._now: Actor | None = None
        self._asleep: set[Actor] = set()

    def run(self, acts: Sequence[tuple[str, Callable[[], None]]]) -> list[Actor]:
        """Play all acts; return the actors, each with the error that ended it, if any."""
        actors = [Actor(name, act) for name, act in acts]
        threads = [threading.Thread(target=self._play, args=(actor,), daemon=True) for actor in actors]
        for thread in threads:
            thread.start()
        try:
            self._schedule(actors)
        finally:
            self._let_go(actors)
            for thread, actor in zip(threads, actors, strict=True):
                thread.join(PATIENCE_S)
                if thread.is_alive():
                    self.monitor.execute("SELECT pg_terminate_backend(%s)", [actor.pid])
        return actors

    def stop(self, actor: Actor) -> None:
        """Wait at the gate until it is this actor's turn."""
        with self._turn:
            if not self._free:
                actor.where = Where.AT_GATE
                self._turn.notify_all()
                self._turn.wait_for(lambda: actor.where is Where.AT_WORK)

    # -- the actors' side

    def _play(self, actor: Actor) -> None:
        _ROLE.actor, _ROLE.stage = actor, self
        try:
            self.stop(actor)
            actor.doing = "BEGIN"
            actor.act()
        except BaseException as error:  # noqa: BLE001 - whatever ended it is for the test to judge
            actor.error = error
        finally:
            _ROLE.actor = _ROLE.stage = None
            with self._turn:
                actor.where, actor.doing = Where.DONE, "done"
                self._turn.notify_all()

    # -- the scheduler's side

    def _schedule(self, actors: Sequence[Actor]) -> None:
        while True:
            self._quiet(actors)
            ready = [actor for actor in actors if actor.where is Where.AT_GATE]
            if not ready:
                return
            actor = self._choose(ready)
            self.step += 1
            self.trace.append(f"{self.step:3} {actor.name}: {actor.doing}")
            with self._turn:
                actor.where = Where.AT_WORK
                self._turn.notify_all()
            self._quiet(actors)
            if not actor.inside:
                self.after_commit()

    def _choose(self, ready: Sequence[Actor]) -> Actor:
        if self._now in ready and self._rng.random() < self._stay:
            return self._now
        self._now = self._rng.choice(ready)
        return self._now

    def _quiet(self, actors: Sequence[Actor]) -> None:
        """Wait until everybody is at a gate, done, or blocked; with nobody at a gate, until somebody is."""
        deadline = monotonic() + PATIENCE_S
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._asleep.issuperset(_at_work(actors)), timeout=GLANCE_S)
                busy = _at_work(actors)
                at_gate = any(actor.where is Where.AT_GATE for actor in actors)
            self._asleep = self._blocked(busy) if busy else set()
            if not busy or (at_gate and len(self._asleep) == len(busy) and busy == _at_work(actors)):
                return
            if monotonic() > deadline:
                raise StuckError(f"nobody goes on: {[(actor.name, actor.doing) for actor in busy]}")
            if not at_gate:
                self._asleep = set()  # until a deadlock is resolved or a statement ends

    def _blocked(self, busy: Sequence[Actor]) -> set[Actor]:
        pids = {row[0] for row in self.monitor.execute(BLOCKED, [[actor.pid for actor in busy]])}
        return {actor for actor in busy if actor.pid in pids}

    def _let_go(self, actors: Sequence[Actor]) -> None:
        """Open all gates: after a failure everybody ends what he has begun, and connections stay usable."""
        with self._turn:
            self._free = True
            for actor in actors:
                if actor.where is Where.AT_GATE:
                    actor.where = Where.AT_WORK
            self._turn.notify_all()


def _at_work(actors: Sequence[Actor]) -> list[Actor]:
    return [actor for actor in actors if actor.where is Where.AT_WORK]
