"""Operators who change settings while everything runs: limits, times, pauses, drains, the kill switch."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

from penstock.domain.lanes import lane as lane_of
from penstock.domain.pools import pool as pool_of
from penstock.errors import NotFound, StoreUnavailable
from penstock.ports.store import Store
from penstock.testing.sim.node import NodeEnv

LANE_MENU: Final[Mapping[str, Sequence[Any]]] = {
    "batch_size": (1, 2, 4, 8),
    "rate": (None, "3/s", "20/s"),
    "max_in_flight": (1, 2, 5, 200),
    "lookahead": ("0s", "1s", "3s"),
    "jitter": ("0s", "200ms"),
    "retry": ('["0s"]', '["0s","300ms"]', '["0s","200ms","400ms","600ms"]'),
    "timeout": ("500ms", "800ms"),
    "lease": ("2s", "3s"),
    "poll_interval": ("200ms", "500ms", "1s"),
    "weight": (1, 3),
    "enabled": (True, False, True),
}
POOL_MENU: Final[Mapping[str, Sequence[Any]]] = {
    "rate": (None, "4/s", "15/s"),
    "burst": (1, 3, 6),
    "max_in_flight": (None, 1, 3),
}
ACTOR: Final = "ops"
LATEST_COMMIT_S: Final = 3.5
WHY: Final = "tuning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What may be changed and how often; `slots`: most of the time it is the slots of a pool."""

    every: timedelta
    lanes: Sequence[str]
    pools: Sequence[str] = ()
    groups: Sequence[tuple[str, str]] = ()
    store: bool = True
    targets: Sequence[str] = ()
    drains: bool = False
    slots: Sequence[int] = ()


async def tune(env: NodeEnv, store: Store, how: Tuning, *, until: float) -> None:
    """Change something now and then until that second; then let everything go that was stopped."""
    while env.clock.monotonic() < until:
        await asyncio.sleep(env.rng.random() * 2 * how.every.total_seconds())
        with suppress(StoreUnavailable):
            await env.executor.run(_change(env.rng, store, how))
    await asyncio.sleep(LATEST_COMMIT_S)  # a change that was given up may still come
    for undo in _let_go(store, how):
        while True:
            with suppress(StoreUnavailable):
                await env.executor.run(undo)
                break
            await asyncio.sleep(0.1)
    await asyncio.Event().wait()


def _change(rng: Random, store: Store, how: Tuning) -> Callable[[], object]:
    """Return one change, all its dice rolled: the same call may be carried out late, or not at all."""
    roll, lane, paused = rng.random(), rng.choice(how.lanes), rng.random() < 0.6
    span = rng.choice((None, timedelta(seconds=rng.uniform(0.3, 3))))
    if how.targets and rng.random() < 0.5:
        target = rng.choice(how.targets)
        return lambda: store.pause_target(target, paused=paused, **_said(store, span))
    if how.drains and rng.random() < 0.6:
        return partial(_drain, store, rng.random(), draining=paused)
    if how.slots and rng.random() < 0.8:
        return partial(set_pool, store, rng.choice(how.pools), {"max_in_flight": rng.choice(how.slots)})
    if roll < 0.45:
        name = rng.choice(list(LANE_MENU))
        return partial(set_lane, store, lane, {name: rng.choice(LANE_MENU[name])})
    if roll < 0.6:
        return lambda: store.pause_lane(lane, paused=paused, **_said(store, span))
    if roll < 0.7 and how.groups:
        in_lane, group = rng.choice(how.groups)
        return partial(store.pause_group, in_lane, group, paused=paused, actor=ACTOR, reason=WHY)
    if roll < 0.8 and how.store:
        return lambda: store.pause_store(paused=paused, **_said(store, span))
    if how.pools and roll < 0.95:
        name, pool = rng.choice(list(POOL_MENU)), rng.choice(how.pools)
        return partial(set_pool, store, pool, {name: rng.choice(POOL_MENU[name])})
    if how.pools:
        pool = rng.choice(how.pools)
        return lambda: store.pause_pool(pool, paused=paused, **_said(store, span))
    return partial(set_lane, store, lane, {"batch_size": rng.choice(LANE_MENU["batch_size"])})


def _let_go(store: Store, how: Tuning) -> list[Callable[[], object]]:
    said: dict[str, Any] = {"actor": ACTOR, "reason": "all clear"}
    return [
        partial(store.pause_store, paused=False, **said),
        *(partial(set_lane, store, lane, {"enabled": True}) for lane in how.lanes),
        *(partial(store.pause_lane, lane, paused=False, **said) for lane in how.lanes),
        *(partial(store.pause_pool, pool, paused=False, **said) for pool in how.pools),
        *(partial(store.pause_group, lane, group, paused=False, **said) for lane, group in how.groups),
        *(partial(store.pause_target, target, paused=False, **said) for target in how.targets),
        *([partial(_drain, store, None, draining=False)] if how.drains else []),
    ]


def _drain(store: Store, which: float | None, *, draining: bool) -> None:
    """Drain a node or let it go, one of those that there are or all."""
    nodes = [row.id for row in store.nodes()]
    chosen = nodes if which is None else nodes[int(which * len(nodes)) :][:1]
    for node in chosen:
        with suppress(NotFound):  # it has left
            store.drain_node(node, draining=draining, actor=ACTOR, reason=WHY)


def set_lane(store: Store, name: str, changes: Mapping[str, object]) -> None:
    """Change some settings of a lane and leave the others."""
    settings = store.lanes()[name].settings
    store.put_lane(lane_of(name, **{**settings, **changes}), actor=ACTOR)


def set_pool(store: Store, name: str, changes: Mapping[str, object]) -> None:
    """Change some settings of a pool and leave the others."""
    settings = store.pools()[name].settings
    store.put_pool(pool_of(name, **{**settings, **changes}), actor=ACTOR)


def _said(store: Store, span: timedelta | None) -> dict[str, Any]:
    return {"actor": ACTOR, "reason": WHY, "until": None if span is None else store.now() + span}
