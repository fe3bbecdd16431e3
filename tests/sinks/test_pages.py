"""The examples of docs/reference/sinks work as they are printed, on real servers, block after block."""

import asyncio
import contextlib
import io
import os
import re
import shlex
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.client import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.sinks.open import make_open
from penstock.stores.connect import connect
from penstock.testing.receiver import receiver
from tests.brokers import ActiveMq, Kafka, RabbitMq, Redis, Sqs
from tests.scheduler.engine import Engine
from tests.servers import free_port
from tests.sinks.test_router import routing

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "sinks"
EXAMPLE = re.compile(r"^## Try it\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(toml|sh|python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
URL = "sqlite:///penstock.db"


class Example:
    """A page's example at work in an empty folder; `said` is what its blocks of Python printed."""

    def __init__(self, kind: str, addresses: dict[str, str], executor: ThreadExecutor) -> None:
        text = EXAMPLE.findall((PAGES / f"{kind}.md").read_text(encoding="utf-8"))[0]
        for printed, real in addresses.items():
            assert printed in text
            text = text.replace(printed, real)
        self.blocks = BLOCK.findall(text)
        self.executor = executor
        self.screen = io.StringIO()
        self.said = ""
        self._names: dict[str, Any] = {}

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            running: Engine | None = None
            for language, block in self.blocks:
                if language == "toml":
                    engine = stack.enter_context(self._prepared(tomllib.loads(block)))
                elif language == "sh":
                    running = running or await stack.enter_async_context(self._node(engine))
                    for command in block.splitlines():
                        await self.executor.run(lambda c=command: self._command(c))  # type: ignore[misc]
                    await engine.until(lambda e=engine: self._sent(e))  # type: ignore[misc]
                elif language == "python":
                    await self.executor.run(lambda b=block: self._python(b))  # type: ignore[misc]

    @contextlib.contextmanager
    def _prepared(self, config: dict[str, Any]) -> Iterator[Engine]:
        store = connect(URL)
        store.migrate()
        for name, settings in config["lanes"].items():
            store.put_lane(lane(name, **{"poll_interval": "50ms", **settings}), actor="test")
        self.open = make_open(
            config.get("sinks", {}),
            executor=self.executor,
            clock=SystemClock(),
            queue=store,
            allow_networks=config.get("http", {}).get("allow_networks", ()),
            endpoint="http://node/process",
            stream=self.screen,
        )
        yield Engine(URL, store, Client(store))
        store.close()

    @asynccontextmanager
    async def _node(self, engine: Engine) -> AsyncIterator[Engine]:
        for one in engine.store.lanes().values():
            engine.sinks[str(one["sink"])] = await self.open(str(one["sink"]))
        async with engine.node():
            yield engine

    def _command(self, command: str) -> None:
        program, *words = shlex.split(command)
        assert program == "penstock"
        done = CliRunner().invoke(main, words, env={"PENSTOCK_STORE": URL})
        assert done.exit_code == 0, done.output

    def _python(self, code: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "example", "exec"), self._names)  # noqa: S102 - our own page
        self.said += out.getvalue()

    @staticmethod
    def _sent(engine: Engine) -> bool:
        counts = engine.store.counts()
        return sum(n for (_, s), n in counts.items() if s in (JobState.SUCCEEDED, JobState.DISPATCHED)) == 2

    def printed(self) -> str:
        """Return what the page says that is printed."""
        return "".join(block for language, block in self.blocks if language == "text")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(variable)


async def shown(kind: str, executor: ThreadExecutor, **addresses: str) -> None:
    example = Example(kind, {f"127.0.0.1:{port}": real for port, real in addresses.items()}, executor)
    await example.run()

    assert example.said == example.printed()


async def test_embedded(executor: ThreadExecutor) -> None:
    await shown("embedded", executor)


async def test_sqs(executor: ThreadExecutor, sqs_server: Sqs) -> None:
    await shown("sqs", executor, **{"9324": f"127.0.0.1:{sqs_server.port}"})


async def test_kafka(executor: ThreadExecutor, kafka_broker: Kafka) -> None:
    await shown("kafka", executor, **{"9092": f"127.0.0.1:{kafka_broker.port}"})


async def test_redis(executor: ThreadExecutor, redis_server: Redis) -> None:
    await shown("redis", executor, **{"6379": f"127.0.0.1:{redis_server.port}"})


async def test_rabbitmq(executor: ThreadExecutor, rabbitmq_server: RabbitMq) -> None:
    await shown("rabbitmq", executor, **{"5672": f"127.0.0.1:{rabbitmq_server.port}"})


@pytest.mark.soak
async def test_activemq(executor: ThreadExecutor, activemq_server: ActiveMq) -> None:
    example = Example("activemq", {"61613": str(activemq_server.port)}, executor)
    await example.run()

    assert example.said == example.printed()


async def test_console(executor: ThreadExecutor) -> None:
    example = Example("console", {}, executor)
    await example.run()

    lines = [re.sub(r"^\S+Z ", "", line) for line in example.screen.getvalue().splitlines()]
    assert [re.sub(r"01[0-9A-Z]{24}", "01J…", line) for line in lines] == example.printed().splitlines()


async def test_http(executor: ThreadExecutor) -> None:
    async with receiver() as received:
        await Example("http", {"http://127.0.0.1:9000": received.url}, executor).run()

    assert [(one.path, one.group, one.body) for one in received.requests] == [
        ("/hook", "customer-1", b'{"order": 7}'),
        ("/hook", "customer-1", b'{"order": 8}'),
    ]


async def test_router(executor: ThreadExecutor) -> None:
    port = free_port()
    async with routing(executor, port) as source:
        await Example("router", {"127.0.0.1:7071": f"127.0.0.1:{port}"}, executor).run()
        found = await source.receive(10)

    assert len(found) == 2


def test_every_page_is_tried_here() -> None:
    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}

    assert {page.stem for page in PAGES.glob("*.md")} <= tried


async def test_an_example_that_does_not_work_is_noticed(executor: ThreadExecutor) -> None:
    example = Example("embedded", {"{'order': 8}": "{'order': 9}"}, executor)
    async with asyncio.timeout(60):
        await example.run()

    assert example.said != example.printed()
