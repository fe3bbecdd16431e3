"""A payload is stored and delivered byte for byte, on every store."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import Client, Enqueued, InvalidJob, Json
from penstock.domain.payloads import BadPayload
from penstock.ports.store import Ask
from tests.client.conftest import LANE
from tests.domain.test_payloads import VALUES

SPACE = st.text(" \t\r\n", max_size=3)


@st.composite
def spellings(draw: st.DrawFn) -> bytes:
    """One of the many ways to write a value: escapes or not, spaces anywhere JSON allows them."""
    value = draw(VALUES)
    comma, colon = f",{draw(SPACE)}", f"{draw(SPACE)}:{draw(SPACE)}"
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=(comma, colon))
    return f"{draw(SPACE)}{text}{draw(SPACE)}".encode()


def delivered(client: Client) -> list[bytes | None]:
    """Claim what is there as a dispatcher does and return the payloads it would send, in order."""
    claim = client.store.claim(Ask(lane=LANE, node=1))
    assert claim is not None
    client.store.settle(claim)
    contexts = [claimed.context for claimed in claim.jobs]
    return [c.payload.encode() if c is not None and c.payload is not None else None for c in contexts]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(spellings(), min_size=1, max_size=12))
def test_what_was_given_is_what_is_sent(client: Client, payloads: list[bytes]) -> None:
    answers = client.enqueue_many({"lane": LANE, "payload": Json(payload)} for payload in payloads)

    ids = [answer.id for answer in answers if isinstance(answer, Enqueued)]
    stored = [client.get(id_).context for id_ in ids]
    assert [c.payload.encode() for c in stored if c is not None and c.payload is not None] == payloads
    assert delivered(client) == payloads


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.text().map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_kept_exactly_or_refused(client: Client, payload: bytes) -> None:
    try:
        client.enqueue(LANE, Json(payload))
    except (BadPayload, InvalidJob):
        assert client.store.claim(Ask(lane=LANE, node=1)) is None
    else:
        assert delivered(client) == [payload]


def test_no_payload_is_not_the_same_as_null(client: Client) -> None:
    client.enqueue(LANE)
    client.enqueue(LANE, Json("null"))

    assert delivered(client) == [None, b"null"]
