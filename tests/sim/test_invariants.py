"""The checks themselves: what is right passes, and each kind of wrong is told apart."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.job import Attempt, Audit, Live, NewJob
from penstock.domain.states import JobState
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.testing.invariants import facts
from penstock.testing.invariants.afterwards import check_afterwards
from penstock.testing.invariants.facts import Delivery, Ledger, Log, Violation
from penstock.testing.invariants.moves import Change, Limits, Spot, check_change
from penstock.testing.store_suite.factories import LANE, claim_groups, enqueue, ordered, put_lane, some

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def row(state: JobState, **fields: object) -> Live:
    job = Live(7, 1, 7, 2, state, 99, "g", None, NOW)
    return job._replace(**fields)  # type: ignore[arg-type]


CLAIMED = row(JobState.CLAIMED, epoch=3, node=1, claimed_at=NOW)


def attempt(outcome: str, after: Live, **fields: object) -> Attempt:
    due = after.due_at if after.state == JobState.PENDING else None
    return Attempt(7, 7, after.attempt, 1, 3, 1, NOW, NOW, outcome, None, due)._replace(**fields)  # type: ignore[arg-type]


def change(
    before: Live | None, after: Live | None, call: str = "settle", *, attempts: tuple[Attempt, ...] = (),
    audit: tuple[Audit, ...] = (), limits: Limits = Limits(3, SECOND),  # noqa: B008
) -> Change:  # fmt: skip
    spots = [None if job is None else Spot(job, NOW if job.state >= 10 else None) for job in (before, after)]
    return Change(
        call=call, now=NOW, before=spots[0], after=spots[1], attempts=attempts, audit=audit, limits=limits
    )


FAILED = row(JobState.PENDING, ord=99 - 2**31, attempt=1, send=1, due_at=NOW + SECOND)
DONE = row(JobState.SUCCEEDED, attempt=1, send=1)
HELD = row(JobState.HELD, reason="operator")


def note(action: str, before: str, after: str, actor: str = "ops") -> Audit:
    return Audit(NOW, 7, 1, actor, action, before, after, "because")


@pytest.mark.parametrize(
    "fine",
    [
        change(None, row(JobState.PENDING), "enqueue"),
        change(row(JobState.PENDING), CLAIMED, "claim_groups"),
        change(CLAIMED, CLAIMED._replace(epoch=4, node=2), "takeover"),
        change(CLAIMED, DONE),
        change(CLAIMED, FAILED, attempts=(attempt("failed", FAILED),)),
        change(row(JobState.PENDING), HELD, "operate", audit=(note("hold", "pending", "held"),)),
        change(DONE, None, "retire"),
        change(DONE, DONE, "report", audit=(note("late", "succeeded", "succeeded", "penstock"),)),
    ],
)
def test_a_move_of_the_machine_passes(fine: Change) -> None:
    check_change(fine)


@pytest.mark.parametrize(
    ("wrong", "violation"),
    [
        (change(None, DONE, "enqueue"), facts.IllegalPath),
        (change(CLAIMED, None), facts.TerminalChanged),
        (change(DONE, row(JobState.PENDING, send=1), "report"), facts.TerminalChanged),
        (change(row(JobState.PENDING), DONE), facts.IllegalPath),
        (change(CLAIMED, CLAIMED._replace(node=2), "takeover"), facts.StaleWrite),
        (change(CLAIMED, DONE._replace(tenant="other")), facts.IllegalPath),
        (change(CLAIMED, DONE._replace(attempt=2)), facts.IllegalPath),
        (change(CLAIMED, DONE._replace(send=0)), facts.UnexplainedSend),
        (change(CLAIMED, FAILED), facts.MissingFromTimeline),
        (change(CLAIMED, CLAIMED, attempts=(attempt("failed", FAILED),)), facts.MissingFromTimeline),
        (change(CLAIMED, FAILED, attempts=(attempt("failed", FAILED, send=2),)), facts.MissingFromTimeline),
        (
            change(CLAIMED, FAILED._replace(open=True), attempts=(attempt("failed", FAILED),)),
            facts.UnexplainedSend,
        ),
        (change(CLAIMED, FAILED._replace(ord=99), attempts=(attempt("failed", FAILED),)), facts.IllegalPath),
        (
            change(CLAIMED, FAILED, attempts=(attempt("failed", FAILED),), limits=Limits(1, SECOND)),
            facts.WrongAttempts,
        ),
        (
            change(CLAIMED, FAILED, attempts=(attempt("failed", FAILED),), limits=Limits(3, 2 * SECOND)),
            facts.WrongAttempts,
        ),
        (change(row(JobState.PENDING), HELD, "operate"), facts.MissingFromTimeline),
    ],
)
def test_anything_else_is_named(wrong: Change, violation: type[Violation]) -> None:
    with pytest.raises(violation):
        check_change(wrong)


@pytest.fixture
def store() -> Store:
    numbers = iter(range(1_000))
    return MemoryStore(clock=lambda: NOW, ids=lambda: f"{next(numbers):026}")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def send_two(store: Store, ledger: Ledger) -> Log:
    """Enqueue two jobs of a group, send both in order and return what arrived."""
    put_lane(store)
    for payload in ("1", "2"):
        job = ordered(payload=payload)
        [job_id] = enqueue(store, job)
        ledger.accept(job_id, job, asked_after=len(ledger))
    log = Log()
    for _ in range(2):
        batch = some(claim_groups(store))
        log.append(delivery(batch.jobs[0].context.id, batch.epoch, batch.jobs[0].context.payload))  # type: ignore[union-attr]
        store.settle(batch)
    return log


def delivery(job_id: str, epoch: int, payload: str | None, send: int = 1) -> Delivery:
    return Delivery(job_id, send, epoch, LANE, "customer-1", 99, payload, float(epoch))


def test_a_run_without_trouble_passes_from_outside(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)

    check_afterwards(ledger, log, store, ids=ledger.accepted)


def test_an_accepted_job_that_is_gone_is_told(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)
    ledger.accept("nobody", NewJob(lane=LANE), asked_after=0)

    with pytest.raises(facts.NotInOnePlace, match="nobody"):
        check_afterwards(ledger, log, store)


def test_a_second_send_without_a_cause_is_told(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)
    log.append(delivery(log.deliveries[1].job, 99, "2"))

    with pytest.raises(facts.UnexplainedSend, match="2 sends, 0 tries"):
        check_afterwards(ledger, log, store)


def test_other_bytes_are_told(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)
    log.deliveries[0] = log.deliveries[0]._replace(payload="1 ")

    with pytest.raises(facts.WrongBytes):
        check_afterwards(ledger, log, store)


def test_a_wrong_order_is_told(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)
    log.deliveries.reverse()

    with pytest.raises(facts.OutOfOrder):
        check_afterwards(ledger, log, store)


def test_a_zombies_message_is_not_held_against_the_order(store: Store, ledger: Ledger) -> None:
    log = send_two(store, ledger)
    log.deliveries.reverse()
    log.deliveries[1] = log.deliveries[1]._replace(stale=True)

    check_afterwards(ledger, log, store)
