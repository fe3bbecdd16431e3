"""Signatures, checked against the independent implementation of the same specification."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from penstock.domain.webhooks import SIGNATURE, BadSecret, problem, secret_bytes, signed

OLD = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
NEW = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba98").decode()
BODY = b'{"n": 1, "name": "\xc3\xa9"}'
NOW = datetime(2026, 3, 1, 12, 0, 0, 900_000, tzinfo=UTC)


def test_the_independent_verifier_takes_what_we_sign() -> None:
    headers = signed([NEW, OLD], id="01JOB", at=datetime.now(UTC), body=BODY)

    assert Webhook(NEW).verify(BODY, headers) == {"n": 1, "name": "é"}
    assert Webhook(OLD).verify(BODY, headers) == {"n": 1, "name": "é"}
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY + b" ", headers)


def test_we_take_what_the_independent_signer_signs() -> None:
    signature = Webhook(NEW).sign("01JOB", NOW, BODY.decode())
    headers = {
        "webhook-id": "01JOB",
        "webhook-timestamp": str(int(NOW.timestamp())),
        "webhook-signature": f"v1a,other v1,AAAA {signature}",
    }

    assert problem([OLD, NEW], headers, BODY, now=NOW) is None


@given(st.text(), st.text(st.characters(codec="ascii"), min_size=1), st.booleans())
def test_any_body_verifies_and_only_that(body: str, job: str, rotated: bool) -> None:  # noqa: FBT001
    data = body.encode(errors="replace")
    headers = signed([NEW, OLD] if rotated else [NEW], id=job, at=NOW, body=data)

    assert problem([NEW], headers, data, now=NOW) is None
    assert problem([NEW], headers, data + b"!", now=NOW) == "no signature matches"
    assert (problem([OLD], headers, data, now=NOW) is None) == rotated


def test_without_secrets_there_is_no_signature() -> None:
    headers = signed([], id="01JOB", at=NOW, body=BODY)

    assert headers == {"webhook-id": "01JOB", "webhook-timestamp": "1772366400"}
    assert problem([NEW], headers, BODY, now=NOW) == "no webhook-signature"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"webhook-id": ""}, "no webhook-id"),
        ({"webhook-id": "01OTHER"}, "no signature matches"),
        ({"webhook-timestamp": "soon"}, "webhook-timestamp is no number of seconds"),
        ({"webhook-timestamp": "9" * 5000}, "webhook-timestamp is no number of seconds"),
        ({"webhook-timestamp": "²"}, "webhook-timestamp is no number of seconds"),
        ({"webhook-signature": "v1,€"}, "no signature matches"),
        ({"webhook-signature": "v2,whatever"}, "no signature matches"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, str], expected: str) -> None:
    headers = signed([NEW], id="01JOB", at=NOW, body=BODY) | change

    assert problem([NEW], headers, BODY, now=NOW) == expected


@pytest.mark.parametrize("off", [timedelta(minutes=-6), timedelta(minutes=6)])
def test_an_old_or_future_message_is_refused(off: timedelta) -> None:
    headers = signed([NEW], id="01JOB", at=NOW + off, body=BODY)

    assert problem([NEW], headers, BODY, now=NOW) == "webhook-timestamp is more than 5 minutes off"


def test_a_secret_may_lack_its_prefix_and_padding() -> None:
    bare = NEW.removeprefix("whsec_").rstrip("=")

    assert secret_bytes(bare) == secret_bytes(NEW)


@pytest.mark.parametrize(
    "wrong",
    ["", "whsec_", "whsec_!!!!", "whsec_é", "whsec_A", "hello", f"whsec_{'A' * 30}", f"whsec_{'A' * 88}"],
)
def test_what_is_no_secret_is_refused_without_repeating_it(wrong: str) -> None:
    with pytest.raises(BadSecret) as caught:
        secret_bytes(wrong)

    assert "!!!!" not in str(caught.value)


def test_headers_are_the_three_of_the_specification() -> None:
    headers = signed([NEW, OLD], id="01JOB", at=NOW, body=BODY)

    assert sorted(headers) == ["webhook-id", "webhook-signature", "webhook-timestamp"]
    assert len(headers[SIGNATURE].split()) == 2
