"""Headers say what they should, and nothing in a job can become a header line of its own."""

import json
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.headers import check_prefix, job_headers, message_headers, spelled

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
BARE = Envelope("01JOB", 3, "orders", 2)


def test_a_bare_job_has_the_headers_that_are_always_there() -> None:
    assert message_headers(BARE) == {
        "X-FlowCatalyst-Event-Id": "01JOB",
        "X-FlowCatalyst-Event-Type": "orders",
        "X-FlowCatalyst-Dispatch-Job-Id": "01JOB",
        "X-Penstock-Job-Id": "01JOB",
        "X-Penstock-Lane": "orders",
        "X-Penstock-Sequence": "99",
        "X-Penstock-Attempt": "2",
        "X-Penstock-Send": "3",
    }


def test_everything_a_job_says_is_there() -> None:
    envelope = BARE._replace(
        group="customer-1",
        sequence=7,
        mode="block_on_error",
        tenant="acme",
        created_at=AT,
        finish_by=AT,
        correlation="trace-1",
        event='{"id": "e1", "type": "order.paid", "at": "2026-01-01T00:00:00Z", "subscription": "s1"}',
    )

    headers = message_headers(envelope, prefix="X-Acme-")

    assert headers == {
        "X-Acme-Event-Id": "e1",
        "X-Acme-Event-Type": "order.paid",
        "X-Acme-Dispatch-Job-Id": "01JOB",
        "X-Acme-Subscription-Id": "s1",
        "X-Acme-Client-Id": "acme",
        "X-Acme-Timestamp": "2026-01-01T00:00:00Z",
        "X-Penstock-Job-Id": "01JOB",
        "X-Penstock-Lane": "orders",
        "X-Penstock-Group": "customer-1",
        "X-Penstock-Sequence": "7",
        "X-Penstock-Mode": "block_on_error",
        "X-Penstock-Attempt": "2",
        "X-Penstock-Send": "3",
        "X-Penstock-Finish-By": "2026-03-01T12:00:00Z",
        "X-Penstock-Correlation": "trace-1",
    }


def test_group_and_time_of_creation_stand_in_for_the_events() -> None:
    headers = message_headers(BARE._replace(group="g", created_at=AT, event="{}"))

    assert headers["X-FlowCatalyst-Subscription-Id"] == "g"
    assert headers["X-FlowCatalyst-Timestamp"] == "2026-03-01T12:00:00Z"


def test_a_job_brings_its_own_headers() -> None:
    text = '{"X-Trace": "abc", "Authorization": "Bearer t", "content-type": "application/cloudevents+json"}'

    assert job_headers(text) == json.loads(text)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "CONNECTION",
        "Expect",
        "Content-Encoding",
        "Proxy-Authorization",
        "webhook-signature",
        "X-Penstock-Job-Id",
        "x-penstock-anything",
        "X-FlowCatalyst-Event-Id",
    ],
)
def test_what_is_not_the_jobs_to_say_is_left_out(name: str) -> None:
    headers = message_headers(BARE._replace(headers=json.dumps({name: "forged", "X-Fine": "1"})))

    assert "forged" not in headers.values()
    assert headers["X-Fine"] == "1"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"X Trace": "a"}', "no header name"),
        ('{"": "a"}', "no header name"),
        ('{"X-A\\r\\nX-B": "a"}', "no header name"),
        ('{"X-A:": "a"}', "no header name"),
        ('{"X-A": "a\\r\\nX-B: b"}', "control character"),
        ('{"X-A": "a\\u0000"}', "control character"),
        ('{"X-A": "a\\u007f"}', "control character"),
        ('{"X-A": "\\ud800"}', "surrogate"),
        ('{"X-A": 1}', "is no text"),
        ("[]", "is no object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_cannot_be_a_header_is_refused(text: str, problem: str) -> None:
    with pytest.raises(Unwritable, match=problem):
        message_headers(BARE._replace(headers=text))


def test_an_event_that_is_no_object_is_refused() -> None:
    with pytest.raises(Unwritable, match="event: is no object"):
        message_headers(BARE._replace(event='"e1"'))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_as_a_headers_value(text: str) -> None:
    value = spelled(text)

    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
    assert unquote(value) == text


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5), st.text(st.characters(codec="utf-8"), max_size=9)
    )
)
def test_no_headers_of_a_job_break_a_line(headers: dict[str, str]) -> None:
    try:
        written = message_headers(BARE._replace(headers=json.dumps(headers)))
    except Unwritable:
        return
    assert not any(c in "\r\n\0" for pair in written.items() for text in pair for c in text)


def test_a_prefix_is_checked() -> None:
    assert check_prefix("X-Acme-") == "X-Acme-"
    for wrong in ("", "X Acme", "X-Acme:\r\n", "X-Penstock-", "webhook-"):
        with pytest.raises(ValueError, match="no prefix"):
            check_prefix(wrong)
