"""The repository itself: nothing in it belongs to one machine, and it says what it must."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Written in pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = "|".join("/" + name + "/" for name in ("work", "root", "farm", "home"))
REGISTRIES = "|".join(
    re.escape(".".join(parts))
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("devpi", "net"),
    )
)
INDEX_OPTION = re.compile(
    r"^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host|--no-index)\b|://", re.MULTILINE
)


def tracked_texts() -> dict[str, str]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [ROOT / name for name in names.stdout.split("\0") if name]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="replace")
        for path in files
        if path.is_file()
    }


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    return tracked_texts()


@pytest.mark.parametrize("pattern", [MACHINE_PATHS, REGISTRIES], ids=["paths", "registries"])
def test_tracked_files_name_no_machine_and_no_registry(texts: dict[str, str], pattern: str) -> None:
    forbidden = re.compile(rf"(?<![\w.}}])({pattern})")
    found = [f"{name}: {match[0]}" for name, text in texts.items() for match in forbidden.finditer(text)]

    assert found == []


def test_requirement_files_say_nothing_about_where_packages_come_from(texts: dict[str, str]) -> None:
    requirements = {name: text for name, text in texts.items() if name.startswith("requirements/")}

    assert "requirements/dev.txt" in requirements
    assert [name for name, text in requirements.items() if INDEX_OPTION.search(text)] == []


def test_every_pinned_requirement_has_a_hash() -> None:
    pinned = (ROOT / "requirements/dev.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", pinned, flags=re.MULTILINE).strip())

    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere(texts: dict[str, str]) -> None:
    pages = {name: text for name, text in texts.items() if name.endswith(".md")}
    broken = [
        f"{name}: {target}"
        for name, text in pages.items()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]

    assert broken == []
