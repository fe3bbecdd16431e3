"""Spans: from the caller, through the job and the message, to whoever receives it."""

import json
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from penstock import AsyncClient, Client
from penstock.domain.envelopes import Envelope
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Accepted, Receipt, TryAgain
from penstock.domain.traces import traceparent_of
from penstock.observability.enqueueing import carrying
from penstock.observability.metrics import Metrics
from penstock.observability.otel import ENDPOINTS, start_tracing
from penstock.observability.tracing import MOST_PASSES, Tracing
from penstock.ports.events import Called, Claimed, LeaseLost, Processed, SettledBatch
from penstock.ports.sink import Probed
from penstock.stores.connect import connect
from penstock.testing.receiver import receiver
from tests.chaos.processes import PENSTOCK, cluster, eventually, start

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(spans: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return Tracing(provider.get_tracer("test"), lambda: NOW)


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def settled(epoch: int, jobs: int) -> SettledBatch:
    outcomes = {"succeeded": jobs}
    return SettledBatch(lane="a", epoch=epoch, applied=jobs, refused=0, outcomes=outcomes, took=0.2)


def claimed(epoch: int, jobs: int = 3) -> Claimed:
    return Claimed(lane="a", epoch=epoch, jobs=jobs, groups=False, took=0.5)


def test_a_pass_lasts_from_its_claim_to_its_last_settle(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    for event in (claimed(1), settled(1, 2)):
        tracing(event)
    assert "pass a" not in named(spans)
    tracing(settled(1, 1))

    found = named(spans)
    whole, claim, settle = found["pass a"], found["claim a"], found["settle a"]
    assert claim.parent is not None
    assert claim.parent.span_id == settle.parent.span_id == whole.context.span_id
    assert claim.end_time - claim.start_time == 500_000_000
    assert whole.attributes["penstock.jobs"] == 3


def test_a_pass_that_lost_its_lease_ends_as_an_error(tracing: Tracing, spans: InMemorySpanExporter) -> None:
    tracing(claimed(1))
    tracing(LeaseLost(lane="a", epoch=1, jobs=3))
    tracing(settled(1, 3))  # somebody else's by now

    assert named(spans)["pass a"].status.description == "the lease was lost"


def test_passes_that_never_end_are_not_kept_for_ever(tracing: Tracing, spans: InMemorySpanExporter) -> None:
    for epoch in range(MOST_PASSES + 1):
        tracing(claimed(epoch))

    assert named(spans)["pass a"].status.description == "it was not seen to end"


def test_a_delivery_belongs_to_the_trace_of_its_job(tracing: Tracing, spans: InMemorySpanExporter) -> None:
    tracing(Processed(lane="a", job="01", outcome="failed", took=1, error="500", traceparent=PARENT))

    span = named(spans)["process a"]
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.status.description == "500"


class Recorder:
    """A sink that keeps what it was given and takes all but the second message."""

    max_batch, keeps_order, format, complete_on = 10, False, "payload", "sent"

    def __init__(self) -> None:
        self.got: list[Envelope] = []
        self.broken = False

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        if self.broken:
            raise RuntimeError("pulled the plug")
        self.got += batch
        return [Accepted("1"), TryAgain("busy")][: len(batch)]

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        return [Probed("unknown") for _ in sends]

    async def close(self) -> None:
        """Nothing to give up."""


async def test_the_message_carries_the_span_of_its_send(
    tracing: Tracing, spans: InMemorySpanExporter
) -> None:
    recorder = Recorder()

    async def open_sink(_: str) -> Recorder:
        return recorder

    sink = await tracing.traced(open_sink)("web")
    tracing(claimed(7, 2))
    jobs = [
        Envelope("01", 1, "a", 1, headers=f'{{"traceparent":"{PARENT}"}}', batch=7),
        Envelope("02", 1, "a", 1, group="g"),
    ]
    receipts = await sink.send(jobs)
    recorder.broken = True
    with pytest.raises(RuntimeError):
        await sink.send(jobs[:1])

    assert [type(receipt) for receipt in receipts] == [Accepted, TryAgain]
    ours, others, failed = (span for span in spans.get_finished_spans() if span.name == "send a")
    assert f"{ours.context.trace_id:032x}" == TRACE
    assert f"{ours.parent.span_id:016x}" == SPAN
    assert traceparent_of(recorder.got[0].headers) == f"00-{TRACE}-{ours.context.span_id:016x}-01"
    assert len(ours.links) == 1
    assert others.parent is None
    assert others.attributes["penstock.outcome"] == "retry"
    assert others.status.description == "busy"
    assert failed.status.description == "RuntimeError: pulled the plug"
    assert await sink.probe(jobs) == [Probed("unknown")] * 2


async def test_the_histograms_of_a_call_name_its_trace(tracing: Tracing) -> None:
    """One that is kept: what is not sampled leads nowhere."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, version="1")

    async def open_sink(_: str) -> Recorder:
        return Recorder()

    async def call(number: int, took: float, *, sampled: int) -> None:
        parent = f"00-{number:032x}-{SPAN}-{sampled:02x}"
        headers = f'{{"traceparent":"{parent}"}}'
        await sink.send([Envelope("01", 1, "a", 1, headers=headers)])
        metrics(Called(lane="a", sink="web", jobs=1, outcomes={"accepted": 1}, took=took, lag=took))

    sink = await tracing.traced(open_sink)("web")
    await call(17, 0.2, sampled=1)
    await call(18, 0.4, sampled=0)
    found = openmetrics.generate_latest(registry).decode()

    for name in ('send_seconds_bucket{lane="a",le="0.25",sink="web"}', "schedule_lag_seconds_bucket"):
        lines = [line for line in found.splitlines() if f"penstock_{name}" in line and "#" in line]
        assert [f'trace_id="{17:032x}"' in line for line in lines] == [True]
    assert f"{18:032x}" not in found
    assert "trace_id" not in generate_latest(registry).decode()


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/penstock.db"
    with closing(connect(url)) as store:
        store.migrate()
        store.put_lane(lane("hello"), actor="test")
    return url


def trace_of(client: Client, job_id: str) -> str | None:
    job = client.get(job_id)
    return traceparent_of(job.context.headers) if job.context else None


@contextmanager
def in_a_span() -> Iterator[None]:
    context = SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=TraceFlags(1))
    with use_span(NonRecordingSpan(context)):
        yield


async def test_a_job_takes_the_trace_of_whoever_enqueues_it(store: str) -> None:
    own = f"00-{'1' * 32}-{'2' * 16}-01"
    with Client(store) as client:
        assert trace_of(client, client.enqueue("hello", 1).id) is None
        with in_a_span():
            assert trace_of(client, client.enqueue("hello", 1, headers={"X-A": "1"}).id) == PARENT
            assert trace_of(client, client.enqueue("hello", 1, headers={"traceparent": own}).id) == own
            async with AsyncClient(store) as awaited:
                assert trace_of(client, (await awaited.enqueue("hello", 1)).id) == PARENT
        with carrying(PARENT):
            assert trace_of(client, client.enqueue("hello", 1).id) == PARENT
        with carrying("nonsense"):
            assert trace_of(client, client.enqueue("hello", 1).id) is None


def test_nothing_is_traced_unless_somebody_wants_it() -> None:
    for variables in ({}, {ENDPOINTS[0]: ""}, {ENDPOINTS[0]: "http://x", "OTEL_SDK_DISABLED": "true"}):
        tracing, stop = start_tracing(variables, version="1", now=lambda: NOW)
        stop()
        assert tracing is None


def test_a_missing_package_is_told_and_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with caplog.at_level(logging.WARNING, "penstock"):
        tracing, _ = start_tracing({ENDPOINTS[0]: "http://x"}, version="1", now=lambda: NOW)

    assert tracing is None
    assert "pip install 'penstock[otel]'" in caplog.text


class Collector:
    """Takes spans as a collector does, by OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: dict[str, Any] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans |= {span.name: span for span in scope.spans}
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


CONFIG = """
[lanes.orders]
sink = "http"
target = "{url}"
"""


async def test_one_trace_from_a_request_to_the_receiver(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/penstock.db"
    with Collector() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "PENSTOCK_HTTP__ALLOW_NETWORKS": "127.0.0.0/8",
        }
        async with receiver() as target, cluster(tmp_path, url, CONFIG.format(url=target.url)) as nodes:
            made = start("dev", tmp_path, *PENSTOCK, "dev", "--once", "--store", url)
            assert await made.ended() == 0, made.told
            node = await nodes.start("node", environment=environment)
            body = {"lane": "orders", "payload": {"n": 1}}
            async with httpx.AsyncClient() as http:
                answer = await http.post(
                    f"{node.url}/api/jobs", json=body, headers={"traceparent": PARENT}, timeout=30
                )
            assert answer.status_code == 201, answer.text
            [request] = await target.received(1)
            await eventually("its spans", lambda: "send orders" in collector.spans)
            async with httpx.AsyncClient(headers=OPENMETRICS) as prometheus:
                metrics = (await prometheus.get(f"{node.url}/metrics", timeout=30)).text
            await nodes.stop()

    enqueue, send = collector.spans["enqueue orders"], collector.spans["send orders"]
    assert enqueue.trace_id.hex() == send.trace_id.hex() == TRACE
    assert enqueue.parent_span_id.hex() == SPAN
    assert send.parent_span_id == enqueue.span_id
    assert request.headers["traceparent"] == f"00-{TRACE}-{send.span_id.hex()}-01"
    assert json.loads(answer.text)["headers"]["traceparent"] == f"00-{TRACE}-{enqueue.span_id.hex()}-01"
    assert collector.spans["settle orders"].parent_span_id == collector.spans["pass orders"].span_id
    [counted] = re.findall(r"penstock_send_seconds_bucket{.*} 1.0 # {(.*?)}", metrics)
    assert f'trace_id="{TRACE}"' in counted
    assert f'span_id="{send.span_id.hex()}"' in counted
    assert metrics.endswith("# EOF\n")
