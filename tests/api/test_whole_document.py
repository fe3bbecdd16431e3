"""A whole node, router and processing endpoint included, is asked all that its document has to say.

`test_openapi` asks by chance; here Schemathesis goes through every bound, type and missing part of every
operation, and at length also through chains of requests, each of which needs the answer of another.
"""

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.processes import BUG, PENSTOCK, Process, eventually, start

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ENDLESS = "/api/events"  # test_events listens to it
ASKED = re.compile(r"(\d+) generated, (\d+) passed")
PAGE = re.compile(r"^ +page +(\S+)", re.MULTILINE)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[tuple[Process, str]]:
    store = f"sqlite:///{tmp_path}/penstock.db"
    process = start("node", tmp_path, *PENSTOCK, "dev", "--port", "0", "--store", store)
    try:
        found = await eventually("the address", lambda: PAGE.search(process.said + process.told))
        yield process, found[1]
    finally:
        process.kill()


async def ask(node: tuple[Process, str], folder: Path, *how: str, within: float) -> str:
    """Return what Schemathesis says, once it has found nothing wrong."""
    process, url = node
    command = Path(sys.executable).parent / "st"
    options = ("--checks", CHECKS, "--exclude-path", ENDLESS, "--no-color", "--request-timeout", "60")
    asking = start("st", folder, command, "run", f"{url}/api/openapi.json", *options, *how)
    code = await asking.ended(within=within)
    assert code == 0, asking.said[-20_000:] + asking.told
    assert process.alive
    assert not BUG.search(process.told), process.told[-5_000:]
    return asking.said


async def test_every_bound_of_every_operation(node: tuple[Process, str], tmp_path: Path) -> None:
    said = await ask(node, tmp_path, "--phases", "coverage", within=240)
    asked = ASKED.search(said)
    assert asked is not None, said
    assert asked[1] == asked[2]
    assert int(asked[1]) >= 2_000


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_it_is_asked_at_length_and_in_chains(node: tuple[Process, str], tmp_path: Path) -> None:
    for phase, examples in (("fuzzing", 1_000), ("stateful", 200)):
        await ask(node, tmp_path, "--phases", phase, "--max-examples", str(examples), within=3_500)
