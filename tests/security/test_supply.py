"""What is brought along: pinned, with its licence, and nothing that is fetched or unpickled at run time."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENDORED = ROOT / "src/penstock/ui/static/vendor"
WATCHED = textwrap.dedent(
    """
    import json, os, signal, sys, threading, urllib.request

    seen = {"unpickled": [], "connected": [], "resolved": []}

    def watch(event, args):
        if event == "pickle.find_class":
            seen["unpickled"].append(str(args))
        elif event == "socket.connect" and isinstance(args[1], tuple) and not args[1][0].startswith("127."):
            seen["connected"].append(str(args[1]))
        elif event == "socket.getaddrinfo" and args[0] not in ("127.0.0.1", "localhost", None):
            seen["resolved"].append(str(args[0]))

    sys.addaudithook(watch)
    from penstock import app
    from penstock.cli.main import main

    def started(self, address):
        def look():
            for path in ("/", "/jobs", "/lanes", "/api/openapi.json", "/metrics", "/health/ready"):
                urllib.request.urlopen(address + path, timeout=30).read()
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Thread(target=look).start()

    run = app.run
    app.run = lambda made: (setattr(made, "started", lambda address: started(made, address)), run(made))
    try:
        main(["dev", "--port", "0", "--demo"], standalone_mode=False)
    finally:
        print("SEEN " + json.dumps(seen))
    """
)


def test_a_node_starts_and_shows_its_pages_with_no_network_and_no_pickle(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]

    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    assert json.loads(found[0][5:]) == {"unpickled": [], "connected": [], "resolved": []}


def test_no_module_of_ours_can_unpickle_or_evaluate() -> None:
    danger = re.compile(
        r"\b(pickle|marshal|shelve|yaml)\.|^import (pickle|marshal|shelve|yaml)\b|(?<![.\w])(eval|exec)\(",
        re.MULTILINE,
    )
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in (ROOT / "src").rglob("*.py")
        if "testing" not in path.parts  # plants bugs in the engine, on purpose
        if (match := danger.search(path.read_text(encoding="utf-8")))
    }

    assert found == {}


def test_every_requirement_is_pinned_with_its_hash() -> None:
    text = (ROOT / "requirements/dev.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    loose = [line[:60] for line in lines if "==" not in line or "--hash=sha256:" not in line]

    assert len(lines) > 20
    assert loose == []


def test_vendored_scripts_come_with_their_licence() -> None:
    names = {path.name for path in VENDORED.iterdir()}
    scripts = {name for name in names if name.endswith((".js", ".css"))}

    assert scripts
    assert {name.partition("-")[0] for name in scripts} <= {
        name.partition("-")[0] for name in names if "LICENSE" in name
    }


@pytest.mark.parametrize(
    "page", sorted((ROOT / "src/penstock/ui").rglob("*.html")), ids=lambda path: path.name
)
def test_no_page_loads_anything_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert re.findall(r"""(?:src|href|action)\s*=\s*["'](?:https?:)?//[^"']*""", text) == []
    assert "|safe" not in text.replace(" ", "")
