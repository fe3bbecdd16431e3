"""Whether a process traces: by the variables that OpenTelemetry itself goes by.

`OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318` turns it on; the other variables of OpenTelemetry
(`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS` ...) count as they always do.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from penstock.observability.enqueueing import NAME

if TYPE_CHECKING:
    from penstock.observability.tracing import Tracing

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_LOG: Final = logging.getLogger("penstock")
Stop = Callable[[], None]


def start_tracing(
    variables: Mapping[str, str], *, version: str, now: Callable[[], datetime]
) -> "tuple[Tracing | None, Stop]":
    """Return what makes spans, or None where nobody wants any, and how to send off the last ones."""
    wanted = any(variables.get(name) for name in ENDPOINTS)
    if not wanted or variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None, _nothing
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, and slow to import
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from penstock.observability.tracing import Tracing  # noqa: PLC0415
    except ImportError as error:
        _LOG.warning("traces are asked for but %s is missing: pip install 'penstock[otel]'", error.name)
        return None, _nothing
    provider = trace.get_tracer_provider()
    stop = _nothing
    if not isinstance(provider, TracerProvider):  # opentelemetry-instrument may have made one already
        named = {} if variables.get("OTEL_SERVICE_NAME") else {"service.name": NAME}
        provider = TracerProvider(resource=Resource.create({"service.version": version, **named}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        stop = provider.shutdown
    return Tracing(provider.get_tracer(NAME, version), now), stop


def _nothing() -> None:
    """There is nothing to send off."""
