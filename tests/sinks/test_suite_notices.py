"""The suite would notice: each of these sinks breaks one promise, and one case fails."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from penstock.domain.outcomes import Accepted, Receipt
from penstock.ports.sink import NOT_STARTED, RUNNING, Envelope, Probed, Sink
from penstock.sinks.python import PythonSink
from penstock.testing.sink_suite import SinkBed, SinkSuite
from tests.sinks.beds import PythonBed


class BentBed(PythonBed):
    """A bed whose sink does something wrong on the way."""

    def __init__(self, bent: type["Bent"]) -> None:
        super().__init__()
        self.bent = bent

    async def open(self) -> Sink:
        return self.bent(self.take)


class Bent(PythonSink):
    def __init__(self, function: object) -> None:
        super().__init__(function, max_batch=3)  # type: ignore[arg-type]


class LosesAReceipt(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        return (await super().send(batch))[:2]


class LosesAMessage(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        await super().send(batch[:2])
        return [Accepted() for _ in batch]


class TurnsThemRound(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        return await super().send(batch[::-1])


class WritesAnew(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        return await super().send(
            [e._replace(payload=json.dumps(json.loads(e.payload or "0"))) for e in batch]
        )


class CutsOff(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        return await super().send([e._replace(payload=(e.payload or "null")[:65536]) for e in batch])


class AcceptsAnything(Bent):
    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        await super().send(batch)
        return [Accepted() for _ in batch]


class Forgets(Bent):
    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        return [Probed(NOT_STARTED) for _ in sends]


class Imagines(Bent):
    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        return [Probed(RUNNING) for _ in sends]


class StaysLocked(Bent):
    def __init__(self, function: object) -> None:
        super().__init__(function)
        self.locked = False

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        if self.locked:
            raise RuntimeError("locked")
        self.locked = True
        receipts = await super().send(batch)
        self.locked = False
        return receipts


class ClosesOnce(Bent):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


@pytest.mark.parametrize(
    ("bent", "case"),
    [
        (LosesAReceipt, "test_every_message_arrives_and_has_a_receipt"),
        (LosesAMessage, "test_every_message_arrives_and_has_a_receipt"),
        (TurnsThemRound, "test_every_message_arrives_and_has_a_receipt"),
        (WritesAnew, "test_bytes_arrive_as_they_are"),
        (CutsOff, "test_a_large_payload_arrives_whole"),
        (AcceptsAnything, "test_a_message_that_cannot_be_sent_leaves_the_others_unhurt"),
        (AcceptsAnything, "test_nothing_is_accepted_when_nobody_is_there"),
        (Forgets, "test_what_was_taken_is_never_called_not_started"),
        (Imagines, "test_nothing_is_known_of_what_was_never_sent"),
        (StaysLocked, "test_a_send_that_is_given_up_leaves_the_sink_usable"),
        (ClosesOnce, "test_it_can_be_closed_twice"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
async def test_a_broken_promise_fails_a_case(
    bent: type[Bent], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.testing.sink_suite.suite.PATIENCE_S", 0.2)
    bed: SinkBed = BentBed(bent)

    with pytest.raises((AssertionError, TimeoutError, RuntimeError, asyncio.CancelledError)):
        await getattr(SinkSuite(), case)(bed)
