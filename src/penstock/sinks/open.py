"""Finds sinks by name: a connection of `[sinks.NAME]`, or a kind's default connection.

Kinds of other packages come through the entry points of the group `penstock.sinks`: the entry's name is the
kind, and it leads to an async function that takes options and supplies (ports/sink.py) and returns the sink.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TextIO, cast

from penstock.brokers.options import with_files
from penstock.domain.bodies import DEFAULT_POOL, unsigned
from penstock.domain.envelopes import Envelope
from penstock.domain.names import near
from penstock.errors import InvalidSetting, StoreUnavailable
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.queue import OpenQueues, Queue
from penstock.ports.secrets import Secrets
from penstock.ports.sink import OpenKind, OpenSink, Options, Sink, SinkUnavailable, Supplies

GROUP: Final = "penstock.sinks"
KINDS: Final[Mapping[str, str]] = {
    "activemq": "penstock.sinks.activemq:open_activemq",
    "console": "penstock.sinks.console:open_console",
    "embedded": "penstock.sinks.embedded:open_embedded",
    "http": "penstock.sinks.http:open_http",
    "kafka": "penstock.sinks.kafka:open_kafka",
    "rabbitmq": "penstock.sinks.rabbitmq:open_rabbitmq",
    "redis": "penstock.sinks.redis:open_redis",
    "router": "penstock.sinks.router:open_router",
    "sqs": "penstock.sinks.sqs:open_sqs",
}
LATER: Final = ("temporal", "step")
# What to install for a kind whose driver is missing; a kind without one needs nothing more.
EXTRAS: Final = frozenset({"sqs", "kafka", "redis", "rabbitmq", "activemq", "temporal"})


def make_open(
    settings: Mapping[str, Options],
    *,
    executor: Executor,
    clock: Clock,
    queue: Queue | None = None,
    open_queues: OpenQueues | None = None,
    secrets: Secrets | None = None,
    allow_networks: Sequence[str] = (),
    own_listeners: Collection[tuple[str, int]] = (),
    endpoint: str = "",
    default_pool: str = DEFAULT_POOL,
    sign: Callable[[Envelope], str] = unsigned,
    stream: TextIO | None = None,
) -> OpenSink:
    """Return what opens sinks by name. `settings` are the options of each named connection.

    Every call opens a connection of its own, which is for the caller to close. See `Supplies` for the rest.
    """
    supplies = Supplies(
        executor=executor,
        clock=clock,
        stream=stream or sys.stdout,
        queue=queue,
        open_queues=open_queues,
        secrets=secrets,
        allow_networks=allow_networks,
        own_listeners=own_listeners,
        endpoint=endpoint,
        default_pool=default_pool,
        sign=sign,
    )

    async def open_sink(name: str) -> Sink:
        options = settings.get(name)
        try:
            if options is None:
                default = await executor.run(lambda: _opener(name, f'unknown sink "{name}"', [*settings]))
                return await default({}, supplies)
            kind = str(options.get("kind"))
            opener = await executor.run(lambda: _opener(kind, f'[sinks.{name}] unknown kind "{kind}"'))
            return await opener(await executor.run(lambda: with_files(options)), supplies)
        except InvalidSetting as error:
            raise SinkUnavailable(f"[sinks.{name}] {error}") from error
        except StoreUnavailable as error:  # queues in a file of their own
            raise SinkUnavailable(f"[sinks.{name}] url: {error}: check the file and its folder") from error

    return open_sink


def kinds() -> list[str]:
    """Return every kind that can be opened here."""
    return sorted({*KINDS, *(point.name for point in entry_points(group=GROUP))})


def load(kind: str) -> OpenKind:
    """Return what opens a connection of this kind, its driver imported, or raise SinkUnavailable."""
    return _opener(kind, f'unknown kind "{kind}"')


def _opener(kind: str, unknown: str, named: Sequence[str] = ()) -> OpenKind:
    """Return what opens a connection of this kind, or raise SinkUnavailable, which begins with `unknown`.

    It imports the kind's driver, which may take as long as a second the first time.
    """
    if kind in KINDS:
        return _loaded(EntryPoint(kind, KINDS[kind], GROUP))
    for point in entry_points(group=GROUP, name=kind):
        return _loaded(point)
    if kind in LATER:
        raise SinkUnavailable(f'the sink kind "{kind}" is not in this version yet: use {_or(kinds())}')
    close = near(kind, [*kinds(), *LATER, *named])
    hint = (
        f"did you mean {_or(close)}?" if close else f"there are {_or(kinds())}, and [sinks.NAME] names more"
    )
    raise SinkUnavailable(f"{unknown}; {hint}")


def _loaded(point: EntryPoint) -> OpenKind:
    try:
        return cast("OpenKind", point.load())
    except ImportError as error:
        extra = f': pip install "penstock[{point.name}]"' if point.name in EXTRAS else ""
        raise SinkUnavailable(f'sink kind "{point.name}" lacks a package ({error}){extra}') from error
    except AttributeError as error:
        raise SinkUnavailable(f'sink kind "{point.name}" of {point.value} is broken: {error}') from error


def _or(names: Sequence[str]) -> str:
    return " or ".join(([", ".join(names[:-1])] if len(names) > 1 else []) + list(names[-1:]))
