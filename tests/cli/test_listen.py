"""`penstock listen` as a process: what it prints, and how it ends."""

import asyncio
import base64
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from penstock.domain.webhooks import signed
from penstock.ports.clock import SystemClock
from penstock.stores.connect import connect
from tests.cli.conftest import Run

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


@dataclass(slots=True)
class Listening:
    url: str
    process: asyncio.subprocess.Process
    code: int | None = None
    rest: list[str] = field(default_factory=list)

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().rstrip("\n")

    async def json(self) -> Any:  # noqa: ANN401
        return json.loads(await self.line())

    async def stop(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)
        assert self.process.stdout is not None
        self.rest = (await self.process.stdout.read()).decode().splitlines()
        self.code = await self.process.wait()


@asynccontextmanager
async def listening(*options: str) -> AsyncIterator[Listening]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "penstock", "listen", "--port", "0", *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            ours = Listening("", process)
            first = await ours.line()
            match = re.search(r"http://[^\s\"]+", first)
            assert match is not None, first
            ours.url = match[0]
            yield ours
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def job(number: int, *, send: int = 1, sequence: int = 1, **more: str) -> dict[str, str]:
    return {
        "X-Penstock-Job-Id": f"01JOB{number}",
        "X-Penstock-Send": str(send),
        "X-Penstock-Attempt": str(send),
        "X-Penstock-Lane": "orders",
        "X-Penstock-Group": "g",
        "X-Penstock-Sequence": str(sequence),
        **more,
    }


async def post(url: str, headers: dict[str, str], body: bytes = b'{"n": 1}') -> int:
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        return answer.status


async def test_it_shows_what_arrives_and_sums_up() -> None:
    async with listening() as ours:
        await post(ours.url, job(1))
        first = await ours.line()
        await post(ours.url, job(2, sequence=5))
        await ours.line()
        await post(ours.url, job(3, sequence=2))
        late = await ours.line()
        await post(ours.url, job(1))
        again = await ours.line()
        await post(ours.url, {}, b"\x1b[2J")
        stranger = await ours.line()
        await ours.stop()

    assert re.fullmatch(r'\d\d:\d\d:\d\d\.\d{3} 200 orders g#1 01JOB1 attempt=1 send=1 \{"n": 1\}', first)
    assert late.endswith("OUT OF ORDER (after sequence 5)")
    assert again.endswith("DUPLICATE (same send)")
    assert stranger.endswith("200 POST / [2J")
    assert "\x1b" not in f"{first}{late}{again}{stranger}", "no colours without a terminal"
    assert ours.code == 0
    assert ours.rest[-1] == (
        "requests 5, jobs 3, groups 1, taken 5, duplicates 1, duplicates of the same send 1, out of order 1"
    )


async def test_json_lines_for_scripts_and_a_log_for_later(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with listening("--json", "--fail", "100%", "--log", str(log)) as ours:
        assert await post(ours.url, job(1)) == 500
        first = await ours.json()
        assert await post(ours.url, job(1, send=2)) == 500
        second = await ours.json()
        await ours.stop(signal.SIGTERM)
    logged = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    assert first.pop("body") == second.pop("body") == '{"n": 1}'
    assert logged == [first, second]
    assert (first["answer"], second["repeat"], second["same_send"]) == (500, "retry", False)
    assert json.loads(ours.rest[-1])["summary"]["turned_down"] == 2
    assert ours.code == 0


async def test_quiet_it_only_sums_up() -> None:
    async with listening("--quiet") as ours:
        await post(ours.url, job(1))
        await ours.stop()

    assert ours.rest == ["", "requests 1, jobs 1, groups 1, taken 1"]


async def test_signatures_are_checked_with_a_secret() -> None:
    async with listening("--secret", SECRET, "--delay", "1ms") as ours:
        genuine = signed([SECRET], id="01JOB1", at=SystemClock().now(), body=b'{"n": 1}')
        assert await post(ours.url, job(1) | genuine) == 200
        await ours.line()
        assert await post(ours.url, job(2)) == 401
        assert (await ours.line()).endswith("BAD SIGNATURE (no webhook-id)")
        await ours.stop()

    assert SECRET not in "\n".join(ours.rest)


async def test_signatures_are_checked_with_the_secrets_of_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    store = connect(url)
    store.migrate()
    [secret, *_] = store.secrets("webhook")
    store.close()
    async with listening("--store", url, "--json") as ours:
        genuine = signed([secret.secret], id="01JOB1", at=SystemClock().now(), body=b'{"n": 1}')
        assert await post(ours.url, job(1) | genuine) == 200
        assert (await ours.json())["signature"] == "ok"
        await ours.stop()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--fail", "half"], 2, "write 10%"),
        (["--fail", "101%"], 2, "write 10%"),
        (["--delay", "soon"], 2, "not a duration"),
        (["--secret", "whsec_?"], 2, "whsec_ and 24 to 64 bytes"),
        (["--store", "sqlite:///missing.db"], 4, "missing.db"),
        (["--store", "mysql://x"], 2, "is no store"),
        (["--host", "192.0.2.1", "--port", "1"], 1, "cannot listen on 192.0.2.1"),
        (["--port", "0", "--log", "no/such/folder"], 1, "No such file or directory: name another with --log"),
        (["--secret", "hello"], 2, "whsec_ and 24 to 64 bytes"),
    ],
)
def test_what_it_cannot_do_it_says(run: Run, options: list[str], code: int, words: str) -> None:
    assert words in run("listen", *options, code=code).output


def test_a_port_that_is_taken_is_told_with_what_to_do(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        said = run("listen", "--port", port, code=1).output

    assert f"port {port}: somebody else does: stop that, or choose another with --port" in said
