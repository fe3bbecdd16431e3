"""The sink of docs/howto/write-a-sink.md passes the suite, run as its author would run it."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-sink.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_is_a_sink_that_passes_the_suite(tmp_path: Path) -> None:
    code = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    (tmp_path / "test_box.py").write_text(code, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_box.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 passed, 2 skipped" in done.stdout, done.stdout
