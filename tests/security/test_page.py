"""Every threat on the page names tests, and every test it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/security.md").read_text(encoding="utf-8")
THREAT = re.compile(r"^\*\*([^*]+)\*\*(.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^- `([\w/]+\.py)::(test_\w+)`", re.MULTILINE)


@pytest.mark.parametrize("threat", list(THREAT.finditer(PAGE)), ids=lambda match: match[1])
def test_a_threat_names_tests_that_exist(threat: re.Match[str]) -> None:
    tests = TEST.findall(threat[2])
    missing = [
        f"{file}::{name}"
        for file, name in tests
        if not (ROOT / file).exists() or f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]

    assert tests
    assert missing == []


def test_no_threat_is_forgotten() -> None:
    assert len(list(THREAT.finditer(PAGE))) == 14
