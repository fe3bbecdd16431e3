"""Webhook secrets as a sink sees them."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from penstock.errors import StoreUnavailable
from penstock.ports.executor import ThreadExecutor
from penstock.ports.secrets import Secret
from penstock.ports.sink import SinkUnavailable
from penstock.sinks.keys import CHANGE_OVER, FRESH_FOR_S, WebhookKeys, no_keys

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class Keyring:
    """A store's keys: `down` while it does not answer."""

    def __init__(self, *keys: Secret) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.down = False

    def secrets(self, name: str) -> list[Secret]:
        assert name == "webhook"
        self.asked += 1
        if self.down:
            raise StoreUnavailable("secrets")
        return self.keys

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str) -> None:
        raise NotImplementedError


def key(secret: str, retired_at: datetime | None = None) -> Secret:
    return Secret("webhook", secret, secret, NOW, retired_at)


async def test_they_are_read_once_and_again_after_a_while(executor: ThreadExecutor) -> None:
    clock, ring = Clock(), Keyring(key("a"))
    keys = WebhookKeys(ring, executor=executor, clock=clock)

    async with asyncio.TaskGroup() as tasks:
        found = [tasks.create_task(keys()) for _ in range(5)]
    assert [task.result() for task in found] == [["a"]] * 5
    assert ring.asked == 1

    ring.keys.insert(0, key("b"))
    clock.seconds = FRESH_FOR_S
    assert await keys() == ["b", "a"]


async def test_a_retired_one_signs_along_for_a_day(executor: ThreadExecutor) -> None:
    lately, long_ago = NOW - timedelta(hours=1), NOW - CHANGE_OVER
    ring = Keyring(key("new"), key("old", lately), key("gone", long_ago))

    assert await WebhookKeys(ring, executor=executor, clock=Clock())() == ["new", "old"]


async def test_while_the_store_is_silent_those_known_last_are_used(executor: ThreadExecutor) -> None:
    clock, ring = Clock(), Keyring(key("a"))
    keys = WebhookKeys(ring, executor=executor, clock=clock)
    await keys()
    ring.down = True
    clock.seconds = 2 * FRESH_FOR_S

    assert await keys() == ["a"]


async def test_without_any_nothing_is_sent(executor: ThreadExecutor) -> None:
    ring = Keyring()
    ring.down = True

    with pytest.raises(SinkUnavailable, match="cannot be read"):
        await WebhookKeys(ring, executor=executor, clock=Clock())()
    assert await no_keys() == ()
