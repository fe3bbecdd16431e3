"""What HTTP answers mean."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.answers import DEFAULT_WAIT, KEPT, LEAST_WAIT, MOST_WAIT, receipt_of
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def answer(status: int, body: bytes = b"", retry_after: str | None = None) -> Receipt:
    return receipt_of(status, body=body, retry_after=retry_after, now=NOW)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_accepted_with_its_status(status: int) -> None:
    assert answer(status) == Accepted(str(status))


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 504, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    assert answer(status, b"oops") == TryAgain(f"HTTP {status}: oops")


@pytest.mark.parametrize("status", [101, 301, 302, 307, 308, 400, 401, 403, 404, 409, 410, 422])
def test_what_will_not_pass_is_rejected(status: int) -> None:
    assert answer(status, b"no") == Rejected(f"HTTP {status}: no")


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("120", timedelta(minutes=2)),
        (" 7 ", timedelta(seconds=7)),
        ("Sun, 01 Mar 2026 12:01:30 GMT", timedelta(seconds=90)),
        ("Sun, 01 Mar 2026 12:01:30 -0000", timedelta(seconds=90)),
        ("Sun, 01 Mar 2026 11:00:00 GMT", LEAST_WAIT),
        ("0", LEAST_WAIT),
        ("999999999", MOST_WAIT),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MOST_WAIT),
        ("Fri, 31 Dec 9999 23:59:59 -2300", MOST_WAIT),
        ("Mon, 16 Nov 99999999999 10:00:00 GMT", DEFAULT_WAIT),
        ("Mon, 16 Nov 2026 10:00:00 +99999999999999", DEFAULT_WAIT),
        ("Mon, 16 Nov 2026 10:00:99999999999999999999 GMT", DEFAULT_WAIT),
        ("9" * 5000, DEFAULT_WAIT),
        ("-1", DEFAULT_WAIT),
        ("soon", DEFAULT_WAIT),
        ("", DEFAULT_WAIT),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_heeded_within_bounds(status: int, retry_after: str, wait: timedelta) -> None:
    assert answer(status, retry_after=retry_after) == Throttled(wait, f"HTTP {status}")


def test_429_alone_waits_too() -> None:
    assert answer(429, b"slow down") == Throttled(DEFAULT_WAIT, "HTTP 429: slow down")


def test_retry_after_of_another_status_changes_nothing() -> None:
    assert answer(500, retry_after="60") == TryAgain("HTTP 500")


@pytest.mark.parametrize(
    ("body", "wait"),
    [
        (b'{"ack": false, "delaySeconds": 30}', timedelta(seconds=30)),
        (b'{"ack": false, "delaySeconds": 1.5}', timedelta(seconds=1.5)),
        (b'{"ack": false}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": null}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": true}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": "5"}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": -5}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": NaN}', DEFAULT_WAIT),
        (b'{"ack": false, "delaySeconds": 0}', LEAST_WAIT),
        (b'{"ack": false, "delaySeconds": 1e300}', MOST_WAIT),
        (b'{"ack": false, "delaySeconds": Infinity}', MOST_WAIT),
    ],
)
def test_a_receiver_may_say_not_now(body: bytes, wait: timedelta) -> None:
    receipt = answer(200, body)

    assert isinstance(receipt, Throttled)
    assert receipt.after == wait


@pytest.mark.parametrize(
    "body",
    [
        b'{"ack": true}',
        b'{"ack": "false"}',
        b'{"ack": 0}',
        b'["ack", false]',
        b'{"ack": false',
        b'{"x": "\\"ack\\": false"}',
        b'{"ack":' + b"[" * 60_000,
        b"\xff\xfe",
    ],
)
def test_anything_else_is_taken_for_yes(body: bytes) -> None:
    receipt = answer(200, body)

    assert isinstance(receipt, Accepted)
    assert str(receipt.receipt).startswith("200 ")
    assert len(str(receipt.receipt)) <= len("200 ") + KEPT


def test_of_a_yes_the_status_and_the_first_words_are_kept() -> None:
    assert answer(204, b"") == Accepted("204")
    assert answer(202, b'{"id":\n7}') == Accepted('202 {"id": 7}')


def test_a_long_answer_is_shown_short_and_clean() -> None:
    receipt = answer(500, b"\x1b[2J\r\n" + "é".encode() * 5000)

    assert isinstance(receipt, TryAgain)
    assert receipt.error.startswith("HTTP 500: [2J ééé")
    assert len(receipt.error) <= 510
    assert receipt.error.isprintable()


@given(st.integers(100, 599), st.binary(max_size=64), st.none() | st.text(max_size=40))
def test_no_answer_is_too_strange(status: int, body: bytes, retry_after: str | None) -> None:
    receipt = answer(status, body, retry_after)

    assert isinstance(receipt, Accepted | Throttled) == (
        200 <= status < 300 or status == 429 or (status == 503 and retry_after is not None)
    )
