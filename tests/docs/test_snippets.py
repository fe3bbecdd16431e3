"""Every Python block of README and docs runs as it is printed; every link leads somewhere."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
# One stands on a class of the reader's own; one needs servers, tests/client/test_howto.py runs it; of one all
# blocks are one file, which tests/sinks/test_howto.py runs; those of sinks need brokers, so that
# tests/sinks/test_pages.py runs them.
FRAGMENTS = {
    "docs/howto/write-a-store.md",
    "docs/howto/enqueue-in-your-transaction.md",
    "docs/howto/write-a-sink.md",
    *(str(page.relative_to(ROOT)) for page in (ROOT / "docs/reference/sinks").glob("*.md")),
}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def snippets() -> list[tuple[str, str]]:
    return [
        (name(page), code)
        for page in PAGES
        if name(page) not in FRAGMENTS
        for code in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    ("page", "code"), snippets(), ids=lambda value: value if value.endswith(".md") else ""
)
def test_a_snippet_runs_as_it_is_printed(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page in {"README.md", "docs/tutorial/ten-minutes.md"}:  # they go on where `penstock dev` ends
        assert CliRunner().invoke(main, ["dev", "--once"]).exit_code == 0

    exec(compile(code, page, "exec"), {"__name__": page})  # noqa: S102 - that is the test


def test_there_are_snippets() -> None:
    assert snippets()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []
