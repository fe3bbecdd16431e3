"""The shell blocks of these pages run as they are printed, in an empty folder, with the files they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
PAGES = ["apply-lanes.md", "enqueue-many.md", "secure.md"]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_one_after_the_other(page: str, tmp_path: Path) -> None:
    text = (HOWTO / page).read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", "\n".join(SHELL.findall(text))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    if page == "enqueue-many.md":
        assert "0 enqueued, 3 already there, 0 refused" in done.stderr
