"""Traces begin where a job is enqueued: the caller's trace context goes with it.

An application that uses OpenTelemetry has loaded it already; one that does not pays nothing. Whoever speaks
to the API sends the header `traceparent`.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from penstock.domain.job import NewJob
from penstock.domain.traces import traceparent_of, well_formed, with_traceparent

NAME: Final = "penstock"
_CARRIED: ContextVar[str | None] = ContextVar("penstock-traceparent", default=None)


@contextmanager
def carrying(traceparent: str | None) -> Iterator[None]:
    """Give what is enqueued meanwhile this trace context, which came with a request."""
    token = _CARRIED.set(well_formed(traceparent))
    try:
        yield
    finally:
        _CARRIED.reset(token)


@contextmanager
def traced(jobs: list[NewJob]) -> Iterator[list[NewJob]]:
    """Give the jobs, each with the trace context of one span around writing them, if there is a trace."""
    trace = sys.modules.get("opentelemetry.trace")
    carried = _CARRIED.get()
    if not jobs or (trace is None and carried is None):
        yield jobs
        return
    if trace is None:
        yield _with(jobs, carried)
        return
    lanes = sorted({job.lane for job in jobs})
    attributes: dict[str, Any] = {"penstock.lane": lanes[0], "messaging.batch.message_count": len(jobs)}
    with trace.get_tracer(NAME).start_as_current_span(
        f"enqueue {lanes[0]}",
        context=_parent(trace, carried),
        kind=trace.SpanKind.PRODUCER,
        attributes=attributes,
    ) as span:
        yield _with(jobs, _spelled(span.get_span_context()) or carried)


def _with(jobs: Sequence[NewJob], traceparent: str | None) -> list[NewJob]:
    """A job that brings a trace context of its own keeps it."""
    if traceparent is None:
        return [*jobs]
    return [
        job
        if traceparent_of(job.headers)
        else job._replace(headers=with_traceparent(job.headers, traceparent))
        for job in jobs
    ]


def _spelled(context: Any) -> str | None:  # noqa: ANN401 - OpenTelemetry's, which may not be there
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _parent(trace: Any, carried: str | None) -> Any:  # noqa: ANN401 - as above
    """Return the parent: what a request brought, unless the caller is in a span of its own (None)."""
    if carried is None or trace.get_current_span().get_span_context().is_valid:
        return None
    return context_of(carried)


def context_of(traceparent: str) -> Any:  # noqa: ANN401 - as above
    """Return a trace context as OpenTelemetry knows it."""
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - an extra
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})
