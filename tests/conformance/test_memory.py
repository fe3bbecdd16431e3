"""The memory store keeps the contract, on a clock that runs and on one that stands still."""

import os
import time
from datetime import UTC, datetime

import pytest

from penstock.domain.ulid import Ulids
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.testing.store_suite import StoreSuite


def _ids() -> Ulids:
    return Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)


class TestMemory(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore(clock=lambda: datetime.now(UTC), ids=_ids())


class TestMemoryOnAFrozenClock(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        frozen = datetime(2026, 3, 1, 12, tzinfo=UTC)
        return MemoryStore(clock=lambda: frozen, ids=_ids())
