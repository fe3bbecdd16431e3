"""The formats against their published schemas, and byte for byte against golden files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope
from penstock.domain.headers import message_headers

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "messages"
AT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
EVERYTHING = Envelope(
    "01JGOLDEN0000000000000000A",
    3,
    "orders",
    2,
    payload='{ "é" : "\\u00e9",\n "n": 1.10, "z":1e2,"a": 12345678901234567890 }',
    target="https://shop.example/hooks?x=1",
    group="customer ü",
    sequence=7,
    tenant="acme",
    pool="web",
    headers='{"X-Trace": "t-1", "Authorization": "Bearer b"}',
    event='{"id": "e1", "type": "order.paid", "at": "2026-02-28T00:00:00Z", "subscription": "s1"}',
    entity="order/a/7",
    correlation="c-1",
    queue="shop.orders",
    run_at=AT,
    finish_by=AT,
    created_at=AT,
    mode="block_on_error",
)
BARE = Envelope("01JGOLDEN0000000000000000B", 1, "orders", 1)
CASES = [
    (format_, name, envelope)
    for format_ in ("pointer", "full", "app", "payload")
    for name, envelope in (("everything", EVERYTHING), ("bare", BARE))
]


def body(format_: str, envelope: Envelope) -> bytes:
    writer = Writer(
        format=format_,
        kind="kafka",
        endpoint="http://node:7070/api/dispatch/process",
        sign=lambda one: f"token of {one.dedup}",
    )
    return writer.body(envelope)


@pytest.mark.parametrize(("format_", "name", "envelope"), CASES)
def test_a_message_is_the_golden_one(format_: str, name: str, envelope: Envelope) -> None:
    assert body(format_, envelope) == (GOLDEN / f"{format_}-1-{name}.json").read_bytes()


@pytest.mark.parametrize(("name", "envelope"), [("everything", EVERYTHING), ("bare", BARE)])
def test_headers_are_the_golden_ones(name: str, envelope: Envelope) -> None:
    written = "".join(f"{header}: {value}\n" for header, value in message_headers(envelope).items())

    assert written == (GOLDEN / f"headers-1-{name}.txt").read_text(encoding="utf-8")


def schema(format_: str) -> Any:  # noqa: ANN401
    return json.loads((SCHEMAS / f"{format_}-1.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("format_", "name", "envelope"), [case for case in CASES if case[0] != "payload"])
def test_a_message_keeps_to_its_schema_and_the_schema_leaves_nothing_out(
    format_: str, name: str, envelope: Envelope
) -> None:
    del name
    published = schema(format_)
    meta.validate(published)
    message = json.loads(body(format_, envelope))

    assert [error.message for error in Draft202012Validator(published).iter_errors(message)] == []
    assert set(message) == set(published["properties"]) == set(published["required"])
    assert published["$id"] == f"urn:penstock:message:{format_}:1"


def test_a_schema_would_notice() -> None:
    message = json.loads(body("pointer", EVERYTHING))
    for wrong in ({"send": 0}, {"send": "1"}, {"mediationType": "SQS"}, {"messageGroupId": 7}, {"id": ""}):
        assert list(Draft202012Validator(schema("pointer")).iter_errors(message | wrong))
