"""A real Prometheus (Debian package) that scrapes one node every moment, with the rules that are shipped."""

import contextlib
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import penstock.cli
from tests.brokers import Broker
from tests.servers import ServerUnavailableError

TEMPLATES = Path(penstock.cli.__file__).parent / "templates"
RULES = TEMPLATES / "prometheus-rules.yml"
EVERY = "500ms"


class Prometheus(Broker):
    """Prometheus on a free port; `query` asks it."""

    name = "prometheus"

    @classmethod
    def check(cls) -> None:
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            raise ServerUnavailableError("Prometheus is not installed (tools/install-services.sh, as root)")

    def scrape(self, node: str) -> None:
        """Write its configuration: the shipped one, for this node, and more often."""
        shutil.copy(RULES, self.home)
        shipped = (TEMPLATES / "prometheus.yml").read_text(encoding="utf-8")
        mine = shipped.replace("127.0.0.1:7070", urllib.parse.urlsplit(node).netloc).replace("15s", EVERY)
        (self.home / "prometheus.yml").write_text(mine, encoding="utf-8")

    def command(self) -> Sequence[str | Path]:
        options = {
            "config.file": self.home / "prometheus.yml",
            "storage.tsdb.path": self.home / "data",
            "web.listen-address": f"127.0.0.1:{self.port}",
            "log.level": "warn",
        }
        return ["prometheus", *(f"--{name}={value}" for name, value in options.items())]

    def is_ready(self) -> bool:
        """Say whether it answers: it listens, and refuses questions, while it opens its data."""
        url = f"http://127.0.0.1:{self.port}/-/ready"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return True
        return False

    def ask(self, path: str, **parameters: str) -> Any:  # noqa: ANN401 - whatever it says
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self.ask("query", query=expression)["result"])

    @classmethod
    @contextlib.contextmanager
    def watching(cls, node: str) -> Iterator[Self]:
        cls.check()
        server = cls()
        try:
            server.scrape(node)
            server.start()
            yield server
        finally:
            server.close()


def promtool(*arguments: str | Path, folder: Path) -> str:
    """Run promtool; what it does not like fails the test."""
    Prometheus.check()
    done = subprocess.run(
        ["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
