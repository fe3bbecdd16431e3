"""The real engine as a node of a simulated world: its ports are the world's, everything else is its own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from penstock.domain.job import Live
from penstock.domain.outcomes import Dead, Receipt, Succeeded
from penstock.ports.events import Event, LaneFailed
from penstock.ports.sink import (
    FAILED,
    NOT_STARTED,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    Envelope,
    Probed,
    Sink,
    SinkUnavailable,
)
from penstock.ports.store import Store
from penstock.scheduler.ground import Ground
from penstock.scheduler.node import Node, NodeOptions
from penstock.testing.invariants.conduct import Conduct, Sender
from penstock.testing.invariants.facts import Wedged
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.sink import Answers, Fate, Message, SimSink

OPTIONS: Final = NodeOptions(
    grace=timedelta(seconds=2),
    leader_ttl=timedelta(seconds=2),
    leader_every=timedelta(milliseconds=600),
    recover_every=timedelta(milliseconds=900),
    expire_every=timedelta(milliseconds=700),
)


@dataclass(frozen=True, slots=True)
class Engine:
    """What every life of a node gets; `row` finds the live row of a job, as the sink's log needs it."""

    store: Store
    sink: SimSink
    row: Callable[[str], Live | None]
    conduct: Conduct
    options: NodeOptions = OPTIONS

    async def run(self, env: NodeEnv) -> None:
        """Be a node until the world says stop."""

        def emit(event: Event) -> None:
            env.record(str(event))
            if isinstance(event, LaneFailed):  # the simulated sink raises nothing: a bug
                self.conduct.fail(Wedged(f"lane {event.lane} failed: {event.error}\n{event.trace}"))

        ground = Ground(self.store, env.executor, env.clock, env.rng, emit)

        def beside(name: str, main: Callable[[Ground], Coroutine[Any, Any, None]]) -> Stoppable:
            return Stoppable(env.beside(name, partial(main, ground)))

        async def open_sink(name: str) -> Sink:
            if self.sink.away(None):
                raise SinkUnavailable(f"{name} cannot be opened")
            return EngineSink(env, self.sink, self.row, self.conduct)

        await Node(ground, open_sink, beside, self.options, stop=env.stop, hurry=env.hurry).run()
        if not env.stop.is_set():
            self.conduct.fail(Wedged(f"{env.id} left without being asked to"))


@dataclass(frozen=True, slots=True)
class Stoppable:
    """What runs beside a node."""

    task: "asyncio.Task[None]"

    def stop(self) -> None:
        """End it."""
        self.task.cancel()


class EngineSink:
    """The world's sink behind the engine's port, reached over the world's network."""

    max_batch = 4
    keeps_order = True
    format = "payload"
    complete_on = "sent"

    def __init__(
        self, env: NodeEnv, sink: SimSink, row: Callable[[str], Live | None], conduct: Conduct
    ) -> None:
        self._env, self._sink, self._row, self._conduct = env, sink, row, conduct

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Send, wait as long as the world wants, and maybe never hear of it again."""
        if any(self._sink.away(envelope.target) for envelope in batch):
            raise SinkUnavailable("no route to the sink")
        for envelope in batch:
            self._conduct.begins(self._sender, envelope)
        try:
            answers = await self._env.network.run(partial(self._arrive, batch))
            await asyncio.sleep(answers.delay)
            if answers.receipts is None:
                await asyncio.Event().wait()
            return answers.receipts or []
        finally:
            for envelope in batch:
                self._conduct.ends(self._sender, envelope)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Ask what became of sends; now and then that takes long."""
        keys = [(envelope.id, envelope.number) for envelope in sends]
        fates = await self._env.network.run(partial(self._sink.probe, keys))
        if self._env.rng.random() < 0.3 and not self._sink.calm:
            await asyncio.sleep(2 * self._env.rng.random())
        return [self._probed(key, fate) for key, fate in zip(keys, fates, strict=True)]

    async def close(self) -> None:
        """Nothing to give up."""

    @property
    def _sender(self) -> Sender:
        return Sender(self._env.id, self._env.frozen_until, self._env.troubled_until)

    def _arrive(self, batch: Sequence[Envelope]) -> Answers:
        for envelope in batch:
            self._conduct.arrives(self._sender, envelope)
        return self._sink.take([self._message(envelope) for envelope in batch])

    def _message(self, envelope: Envelope) -> Message:
        row = self._row(envelope.id)
        return Message(
            envelope.id,
            envelope.number,
            envelope.batch or 0,
            envelope.lane,
            envelope.ordered_group,
            envelope.sequence,
            envelope.payload,
            envelope.attempt - 1,
            row.max_attempts if row is not None else None,
            self._env.id,
            envelope.target,
            self._conduct.settings.limits_of(envelope),
            self._conduct.rested(self._sender, envelope) and self._conduct.well(self._sender),
        )

    def _probed(self, key: tuple[str, int], fate: Fate) -> Probed:
        match fate:
            case Fate.NOT_STARTED:
                return Probed(NOT_STARTED)
            case Fate.RUNNING:
                return Probed(RUNNING)
            case Fate.UNKNOWN:
                return Probed(UNKNOWN)
            case Fate.ENDED:
                ended = self._sink.ended(key)
                if ended is None or isinstance(ended, Succeeded):
                    return Probed(SUCCEEDED)
                return Probed(FAILED, error="executor", retryable=not isinstance(ended, Dead))
