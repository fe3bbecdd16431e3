"""Somebody who asks at any moment why a job waits; what he is told is held against the facts."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from penstock.domain.gates import Explanation
from penstock.errors import StoreUnavailable
from penstock.explain import explain
from penstock.ports.store import Store
from penstock.testing.sim.node import NodeEnv

EVERY: Final = timedelta(milliseconds=400)
Heard = Callable[[str, Explanation | None], None]


async def ask(env: NodeEnv, store: Store, ids: Callable[[], Sequence[str]], heard: Heard) -> None:
    """Ask for ever; `heard` is told at the very moment of the answer."""
    while True:
        await asyncio.sleep(env.rng.random() * 2 * EVERY.total_seconds())
        known = ids()
        if known:
            with suppress(StoreUnavailable):
                await env.executor.run(partial(_ask, store, env.rng.choice(known), heard))


def _ask(store: Store, job_id: str, heard: Heard) -> None:
    heard(job_id, explain(store, job_id))
