"""The four formats, byte for byte."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
# What a reader and writer of JSON would change: blanks, an escape, digits, the order, an exponent.
PAYLOAD = '{ "é" : "\\u00e9",\n "n": 1.10, "z":1e2,"a": 12345678901234567890 }'
ENVELOPE = Envelope(
    "01JOB",
    2,
    "orders",
    1,
    payload=PAYLOAD,
    target="http://h/x",
    group="g",
    headers='{"X-A": "ü"}',
    run_at=AT,
    entity="order/a/7",
    mode="block_on_error",
)


def writer(format: str = "full", **settings: object) -> Writer:  # noqa: A002
    return Writer(format=format, kind="kafka", **settings)  # type: ignore[arg-type]


def test_a_payload_is_its_bytes() -> None:
    assert writer("payload").body(ENVELOPE) == PAYLOAD.encode()


def test_no_payload_is_null_so_that_it_can_be_read() -> None:
    assert writer("payload").body(ENVELOPE._replace(payload=None)) == b"null"


def test_full_holds_everything_and_the_payload_as_it_is() -> None:
    body = writer().body(ENVELOPE)

    assert b'"payload":' + PAYLOAD.encode() + b',"headers"' in body
    found = json.loads(body)
    assert found.pop("headers").items() >= {"X-A": "ü", "X-Penstock-Job-Id": "01JOB"}.items()
    assert found == {
        "id": "01JOB",
        "send": 2,
        "lane": "orders",
        "poolCode": "DISPATCH-POOL",
        "mediationType": "HTTP",
        "target": "http://h/x",
        "payload": json.loads(PAYLOAD),
        "messageGroupId": "g",
        "deduplicationId": "01JOB:2",
    }


def test_a_pointer_leads_to_the_processing_endpoint() -> None:
    ours = writer("pointer", endpoint="http://n/p", default_pool="P", sign=lambda e: f"token of {e.dedup}")

    assert json.loads(ours.body(ENVELOPE)) == {
        "id": "01JOB",
        "poolCode": "P",
        "authToken": "token of 01JOB:2",
        "mediationType": "HTTP",
        "mediationTarget": "http://n/p",
        "messageGroupId": "g",
        "send": 2,
    }
    assert json.loads(writer("pointer").body(ENVELOPE._replace(pool="mine")))["poolCode"] == "mine"
    assert json.loads(writer("pointer").body(ENVELOPE))["authToken"] == ""


def test_app_is_flat() -> None:
    body = writer("app").body(ENVELOPE._replace(queue="topic-1"))

    assert b'"jobParams":' + PAYLOAD.encode() in body
    assert json.loads(body) == {
        "jobId": "01JOB",
        "appName": "orders",
        "entityId": "a/7",
        "executionTime": "2026-03-01T12:00:00Z",
        "queueType": "KAFKA",
        "topicName": "topic-1",
        "jobParams": json.loads(PAYLOAD),
    }


def test_app_without_the_optional_parts() -> None:
    found = json.loads(writer("app").body(Envelope("01JOB", 1, "orders", 1)))

    assert (found["entityId"], found["executionTime"], found["jobParams"]) == (None, None, None)
    assert found["topicName"] == "orders"
    assert json.loads(writer("app").body(ENVELOPE._replace(entity="7")))["entityId"] == "7"


def test_a_label_is_not_an_order_to_keep() -> None:
    found = json.loads(writer().body(ENVELOPE._replace(mode="immediate")))

    assert found["messageGroupId"] is None
    assert found["headers"]["X-Penstock-Group"] == "g"


def test_what_an_envelope_says_wins_over_the_sinks_format() -> None:
    assert writer("full").body(ENVELOPE._replace(format="payload")) == PAYLOAD.encode()


def test_what_cannot_be_written_says_why() -> None:
    with pytest.raises(Unwritable, match="none of payload, full"):
        writer("xml").body(ENVELOPE)
    with pytest.raises(Unwritable, match="surrogate"):
        writer("payload").body(ENVELOPE._replace(payload='"\ud800"'))
    with pytest.raises(Unwritable, match="headers"):
        writer("full").body(ENVELOPE._replace(headers="[]"))


texts = st.text(st.characters(codec="utf-8"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_any_payload_arrives_byte_for_byte(value: object, ascii_only: bool, indent: int | None) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    envelope = ENVELOPE._replace(payload=text)

    assert writer("payload").body(envelope) == text.encode()
    assert b'"payload":' + text.encode() + b"," in writer("full").body(envelope)
    assert writer("app").body(envelope).endswith(b'"jobParams":' + text.encode() + b"}")
    json.loads(writer("full").body(envelope))
