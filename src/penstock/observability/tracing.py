"""OpenTelemetry spans of a node (extra `otel`): passes from events, sends around the sinks.

pass LANE     a claim from its lease to its last settle; under it `claim` and each `settle`
send LANE     one message handed to a sink: a child of the span that enqueued the job, linked to its pass;
              what the receiver gets as `traceparent` is this span
process LANE  one delivery by the processing endpoint, a child of the span that enqueued the job
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from penstock.domain.traces import traceparent_of, with_traceparent
from penstock.observability.enqueueing import context_of
from penstock.observability.exemplars import note_none, note_span
from penstock.observability.words import SENT, spelled
from penstock.ports.events import Claimed, Event, LeaseLost, Processed, SettledBatch
from penstock.ports.sink import Envelope, OpenSink, Probed, Sink

MOST_PASSES: Final = 10_000
_NS: Final = 1_000_000_000


class Tracing:
    """Subscribes to events and wraps sinks; `now` is the wall clock that spans are dated by."""

    def __init__(self, tracer: Tracer, now: Callable[[], datetime]) -> None:
        self._tracer, self._now = tracer, now
        # By epoch: the span, and how many of its jobs have no outcome yet.
        self._passes: OrderedDict[int, tuple[Span, int]] = OrderedDict()

    def __call__(self, event: Event) -> None:
        """Make spans of an event; it happened just now."""
        match event:
            case Claimed(lane=lane, epoch=epoch, jobs=jobs, took=took):
                self._begin(lane, epoch, jobs, took)
            case SettledBatch(lane=lane, epoch=epoch, outcomes=outcomes, took=took, refused=refused):
                facts = {"penstock.jobs": sum(outcomes.values()), "penstock.refused": refused}
                self._part("settle", lane, epoch, took, facts)
                self._settled(epoch, sum(outcomes.values()))
            case LeaseLost(epoch=epoch):
                self._end(epoch, "the lease was lost")
            case Processed():
                self._processed(event)
            case _:
                pass

    def traced(self, open_sink: OpenSink) -> OpenSink:
        """Return what opens sinks whose sends are spans."""

        async def opened(name: str) -> Sink:
            return TracedSink(await open_sink(name), name, self)

        return opened

    def begin_send(self, envelope: Envelope, sink: str) -> Span:
        """Return the span of one message that is about to be sent."""
        before = traceparent_of(envelope.headers)
        known = self._passes.get(envelope.batch or 0)
        return self._tracer.start_span(
            f"send {envelope.lane}",
            context=context_of(before) if before else None,
            kind=SpanKind.PRODUCER,
            links=[Link(known[0].get_span_context())] if known else [],
            attributes={
                "messaging.system": "penstock",
                "messaging.message.id": envelope.id,
                "penstock.lane": envelope.lane,
                "penstock.sink": sink,
                "penstock.send": envelope.number,
                "penstock.attempt": envelope.attempt,
                **({"penstock.group": envelope.group} if envelope.group else {}),
                **({"penstock.epoch": envelope.batch} if envelope.batch else {}),
            },
        )

    def _begin(self, lane: str, epoch: int, jobs: int, took: float) -> None:
        span = self._tracer.start_span(
            f"pass {lane}",
            start_time=self._ns() - int(took * _NS),
            attributes={"penstock.lane": lane, "penstock.epoch": epoch, "penstock.jobs": jobs},
        )
        self._passes[epoch] = (span, jobs)
        self._part("claim", lane, epoch, took, {"penstock.jobs": jobs})
        while len(self._passes) > MOST_PASSES:
            self._end(next(iter(self._passes)), "it was not seen to end")

    def _part(self, name: str, lane: str, epoch: int, took: float, facts: dict[str, int]) -> None:
        """Make a span that is over: a part of a pass."""
        known, now = self._passes.get(epoch), self._ns()
        self._tracer.start_span(
            f"{name} {lane}",
            context=set_span_in_context(known[0]) if known else None,
            start_time=now - int(took * _NS),
            attributes={"penstock.lane": lane, "penstock.epoch": epoch, **facts},
        ).end(now)

    def _settled(self, epoch: int, jobs: int) -> None:
        if epoch in self._passes:
            span, left = self._passes[epoch]
            self._passes[epoch] = (span, left - jobs)
            if left <= jobs:
                self._end(epoch)

    def _end(self, epoch: int, problem: str = "") -> None:
        span, _ = self._passes.pop(epoch, (None, 0))
        if span is not None:
            if problem:
                span.set_status(Status(StatusCode.ERROR, problem))
            span.end(self._ns())

    def _processed(self, event: Processed) -> None:
        now = self._ns()
        span = self._tracer.start_span(
            f"process {event.lane}",
            context=context_of(event.traceparent) if event.traceparent else None,
            kind=SpanKind.CONSUMER,
            start_time=now - int(event.took * _NS),
            attributes={
                "messaging.message.id": event.job,
                "penstock.lane": event.lane,
                "penstock.outcome": event.outcome,
            },
        )
        if event.error:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(now)

    def _ns(self) -> int:
        return int(self._now().timestamp() * _NS)


class TracedSink:
    """A sink whose sends are spans; in all else the sink itself."""

    def __init__(self, sink: Sink, name: str, tracing: Tracing) -> None:
        self._sink, self._name, self._tracing = sink, name, tracing
        self.max_batch, self.keeps_order = sink.max_batch, sink.keeps_order
        self.format, self.complete_on = sink.format, sink.complete_on

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a kind has beyond the port
        return getattr(self._sink, name)

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Any]:
        """Send the messages, each under a span of its own."""
        spans = [self._tracing.begin_send(envelope, self._name) for envelope in batch]
        _note_kept(spans)
        problem = "it was given up"
        try:
            carried = [_carrying(envelope, span) for envelope, span in zip(batch, spans, strict=True)]
            receipts = await self._sink.send(carried)
            problem = ""
            for span, receipt in zip(spans, receipts, strict=False):
                _tell(span, receipt)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            for span in spans:
                if problem:
                    span.set_status(Status(StatusCode.ERROR, problem))
                span.end()
        return receipts

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Say what became of earlier sends."""
        return await self._sink.probe(sends)

    async def close(self) -> None:
        """Give up connections."""
        await self._sink.close()


def _note_kept(spans: Sequence[Span]) -> None:
    """Note the first span that is exported: an exemplar that leads to no trace is worth nothing."""
    contexts = (span.get_span_context() for span in spans)
    kept = next((context for context in contexts if context.trace_flags.sampled), None)
    if kept is None:
        note_none()
    else:
        note_span(kept.trace_id, kept.span_id)


def _carrying(envelope: Envelope, span: Span) -> Envelope:
    context = span.get_span_context()
    if not context.is_valid:
        return envelope
    parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    return envelope._replace(headers=with_traceparent(envelope.headers, parent))


def _tell(span: Span, receipt: object) -> None:
    word = type(receipt).__name__.lower()
    span.set_attribute("penstock.outcome", spelled(word))
    if word not in SENT:
        span.set_status(Status(StatusCode.ERROR, str(getattr(receipt, "error", None) or word)))
