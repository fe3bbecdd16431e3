"""The judge of these tests notices what it is there for: a log that was tampered with does not pass."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.job import Claim, NewJob
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Lapsed
from penstock.ports.store import Ask, Store
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.invariants.afterwards import check_afterwards
from penstock.testing.invariants.facts import (
    Ledger,
    OutOfOrder,
    Undelivered,
    UnexplainedSend,
    Violation,
    WrongBytes,
)
from penstock.testing.invariants.received import log_of

LEASE = timedelta(seconds=3)
Line = dict[str, Any]


@dataclass(slots=True)
class World:
    """A store whose clock is set by hand, and the log of a receiver."""

    folder: Path
    now: datetime = datetime(2026, 11, 15, 12, tzinfo=UTC)
    ledger: Ledger = field(default_factory=Ledger)
    lines: list[Line] = field(default_factory=list)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = SqliteStore(self.folder / "p.db", clock=lambda: self.now)
        self.store.migrate()
        self.store.put_lane(lane("orders", mode="block_on_error"), actor="test")

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def enqueue(self, payload: str) -> None:
        job = NewJob(lane="orders", payload=payload, group="g")
        [answer] = self.store.enqueue([job])
        self.ledger.accept(answer.id, job, asked_after=len(self.ledger))  # type: ignore[union-attr]
        self.wait(0.1)

    def claim(self) -> Claim:
        self.wait(0.1)
        claim = self.store.claim_groups(Ask(lane="orders", node=1, lease=LEASE))
        assert claim is not None
        return claim

    def send(self, claim: Claim) -> None:
        self.wait(0.1)
        [(job, context)] = claim.jobs
        assert context is not None
        self.lines.append(
            {
                "time": self.now.isoformat(),
                "id": context.id,
                "send": job.current_send,
                "lane": "orders",
                "group": "g",
                "sequence": context.sequence,
                "sha256": hashlib.sha256((context.payload or "").encode()).hexdigest(),
                "answer": 200,
            }
        )
        self.wait(0.1)

    def judge(self) -> list[bool]:
        """Return which messages were stale, if everything is as promised."""
        log = log_of(self.lines, self.store, self.ledger)
        check_afterwards(self.ledger, log, self.store, ids=list(self.ledger.accepted))
        return [line.stale for line in log.deliveries]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two jobs of a group, sent one after the other."""
    world = World(tmp_path)
    for payload in ("1", "2"):
        world.enqueue(payload)
    for _ in range(2):
        claim = world.claim()
        world.send(claim)
        world.store.settle(claim)
    return world


def lose(lines: list[Line]) -> None:
    del lines[1]


def refuse(lines: list[Line]) -> None:
    lines[1]["answer"] = 500


def repeat(lines: list[Line]) -> None:
    lines.insert(1, dict(lines[0]))


def repeat_late(lines: list[Line]) -> None:
    lines.append(lines[0] | {"time": "2026-11-15T13:00:00+00:00"})


def renumber(lines: list[Line]) -> None:
    lines[1]["send"] = 2


def swap(lines: list[Line]) -> None:
    lines.reverse()


def change(lines: list[Line]) -> None:
    lines[1]["sha256"] = "0" * 64


def test_what_is_as_it_should_be_passes(world: World) -> None:
    assert world.judge() == [False, False]


@pytest.mark.parametrize(
    ("tamper", "violation"),
    [
        (lose, Undelivered),
        (refuse, Undelivered),
        (repeat, UnexplainedSend),
        (repeat_late, UnexplainedSend),
        (renumber, UnexplainedSend),
        (swap, OutOfOrder),
        (change, WrongBytes),
    ],
)
def test_a_log_that_was_tampered_with_does_not(
    world: World, tamper: Callable[[list[Line]], None], violation: type[Violation]
) -> None:
    tamper(world.lines)

    with pytest.raises(violation):
        world.judge()


@pytest.mark.parametrize("late", [False, True], ids=["while its successor works", "after all is over"])
def test_a_zombies_message_is_told_from_its_successors(tmp_path: Path, *, late: bool) -> None:
    """The first holder sends after its claim was taken over; the second one sends for its own claim."""
    world = World(tmp_path)
    world.enqueue("1")
    zombie = world.claim()
    world.wait(4)
    [taken] = world.store.takeover(2, LEASE, 10)
    world.store.settle(taken, {job.job.arrival: Lapsed() for job in taken.jobs})
    again = world.claim()
    if not late:
        world.send(zombie)
    world.send(again)
    world.store.settle(again)
    if late:
        world.wait(1)
        world.send(zombie)

    assert world.judge() == [False, True]
