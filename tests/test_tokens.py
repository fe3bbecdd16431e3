"""Tokens in messages: only ours, only for their job and send, with any key that is known."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import jwt
import pytest

from penstock.domain.envelopes import Envelope
from penstock.errors import StoreUnavailable
from penstock.ports.executor import ThreadExecutor
from penstock.ports.secrets import Secret
from penstock.ports.sink import SinkUnavailable
from penstock.tokens import AUDIENCE, LIFETIME, SOONEST_S, BadToken, Tokens

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ENVELOPE = Envelope(JOB, 3, "orders", 1)
SECRET, OTHER = "s" * 43, "o" * 43


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class Keyring:
    """A store's keys, newest first; `down` while it does not answer."""

    def __init__(self) -> None:
        self.keys = [Secret("token", "1", SECRET, NOW)]
        self.asked = 0
        self.down = False
        self.read: Callable[[], object] = str

    def secrets(self, name: str) -> list[Secret]:
        assert name == "token"
        self.asked += 1
        self.read()
        if self.down:
            raise StoreUnavailable("secrets")
        return self.keys

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str) -> None:  # noqa: ARG002
        self.keys = [
            Secret(name, kid, secret, NOW),
            *(key._replace(retired_at=NOW) for key in self.keys),
        ]


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    with ThreadExecutor(1, name="test") as threads:
        yield threads


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keyring() -> Keyring:
    return Keyring()


@pytest.fixture
async def tokens(keyring: Keyring, clock: Clock, executor: ThreadExecutor) -> Tokens:
    tokens = Tokens(keyring, executor=executor, clock=clock)
    await tokens.refresh()
    return tokens


def forged(key: str = SECRET, *, alg: str = "HS256", kid: object = "1", **claims: object) -> str:
    usual = {"aud": AUDIENCE, "jti": f"{JOB}:3", "exp": int(NOW.timestamp()) + 60}
    said = {name: value for name, value in (usual | claims).items() if value is not None}
    return jwt.encode(said, key, algorithm=alg, headers={} if kid is None else {"kid": kid})


async def test_a_token_is_for_its_job_and_its_send(tokens: Tokens) -> None:
    token = tokens.sign(ENVELOPE)

    assert await tokens.verify(token) == (JOB, 3, NOW + LIFETIME)
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "kid": "1", "typ": "JWT"}


@pytest.mark.parametrize(
    "token",
    [
        forged("", alg="none"),
        forged(SECRET * 2, alg="HS384"),
        forged(SECRET * 2, alg="HS512"),
        forged(OTHER),
        forged(kid="2"),
        forged(kid=None),
        forged(aud="somebody"),
        forged(aud=None),
        forged(exp=None),
        forged(exp="soon"),
        forged(exp=10**300),
        forged(jti=None),
        forged(jti=JOB),
        forged(jti=f"{JOB}:0"),
        forged(jti=f"{JOB}:-1"),
        forged(jti=f"{JOB}:²"),
        forged(jti=f"{JOB}:{2**31}"),
        forged(jti=f"{JOB}:{'9' * 100}"),
        "",
        "a.b.c",
        "....",
        "\ud800",
        "x" * 5000,
        "[" * 3000,
    ],
)
async def test_what_is_not_ours_is_refused(tokens: Tokens, token: str) -> None:
    with pytest.raises(BadToken) as refused:
        await tokens.verify(token)

    assert SECRET not in str(refused.value)


async def test_a_tampered_token_is_refused(tokens: Tokens) -> None:
    token = tokens.sign(ENVELOPE)
    head, claims, signature = token.split(".")
    other = forged(jti=f"{JOB}:4").split(".")[1]

    for tampered in (
        f"{head}.{other}.{signature}",
        f"{head}.{claims}.{signature[:-2]}AA",
        f"{head}.{claims}.",
    ):
        with pytest.raises(BadToken):
            await tokens.verify(tampered)


async def test_an_expired_token_is_genuine_still(tokens: Tokens, clock: Clock) -> None:
    token = tokens.sign(ENVELOPE)
    clock.seconds = LIFETIME.total_seconds() * 3

    assert (await tokens.verify(token)).expires_at < clock.now()


async def test_a_rotated_key_verifies_and_the_new_one_signs(
    tokens: Tokens, keyring: Keyring, clock: Clock, executor: ThreadExecutor
) -> None:
    before = tokens.sign(ENVELOPE)
    keyring.add_secret("token", "2", OTHER, actor="test")
    elsewhere = Tokens(keyring, executor=executor, clock=clock)
    await elsewhere.refresh()
    after = elsewhere.sign(ENVELOPE)

    assert jwt.get_unverified_header(after)["kid"] == "2"
    assert await elsewhere.verify(before) == await tokens.verify(before)
    clock.seconds += SOONEST_S  # who has not heard of the new key yet looks for it
    assert (await tokens.verify(after)).send == 3
    assert jwt.get_unverified_header(tokens.sign(ENVELOPE))["kid"] == "2"


async def test_unknown_keys_do_not_make_the_store_be_asked_each_time(
    tokens: Tokens, keyring: Keyring, clock: Clock
) -> None:
    clock.seconds += SOONEST_S
    for number in range(20):
        with pytest.raises(BadToken):
            await tokens.verify(forged(kid=f"k{number}"))

    assert keyring.asked == 2


async def test_while_the_store_is_away_known_keys_do(tokens: Tokens, keyring: Keyring, clock: Clock) -> None:
    keyring.down = True
    clock.seconds += 100
    await tokens.refresh()

    assert (await tokens.verify(tokens.sign(ENVELOPE))).job == JOB


async def test_nothing_is_signed_before_a_key_is_known(
    keyring: Keyring, clock: Clock, executor: ThreadExecutor
) -> None:
    keyring.down = True
    tokens = Tokens(keyring, executor=executor, clock=clock)

    with pytest.raises(StoreUnavailable):
        await tokens.refresh()
    with pytest.raises(SinkUnavailable, match="migrate"):
        tokens.sign(ENVELOPE)


async def test_keys_are_read_until_told_to_stop(
    keyring: Keyring, clock: Clock, executor: ThreadExecutor
) -> None:
    tokens, stop = Tokens(keyring, executor=executor, clock=clock), asyncio.Event()
    keyring.read = lambda: asyncio.run_coroutine_threadsafe(_set(stop), loop)
    loop = asyncio.get_running_loop()
    await tokens.keep_fresh(stop)

    assert keyring.asked == 1


async def _set(event: asyncio.Event) -> None:
    event.set()
