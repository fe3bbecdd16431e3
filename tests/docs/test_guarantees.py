"""Every promise names tests, and every test it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/guarantees.md").read_text(encoding="utf-8")
PITFALLS = (ROOT / "docs/explanation/pitfalls.md").read_text(encoding="utf-8")
PROMISE = re.compile(r"^\*\*([GP]\d+)\..*?(?=^\*\*[GP]\d+\.|^## |\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^- `([\w/]+\.py)::(test_\w+)`", re.MULTILINE)


@pytest.mark.parametrize("promise", list(PROMISE.finditer(f"{PAGE}\n{PITFALLS}")), ids=lambda match: match[1])
def test_a_promise_names_tests_that_exist(promise: re.Match[str]) -> None:
    tests = TEST.findall(promise[0])

    missing = [f"{file}::{name}" for file, name in tests if not is_there(file, name)]
    assert tests
    assert missing == []


def test_there_are_as_many_promises_as_numbers() -> None:
    assert [match[1] for match in PROMISE.finditer(PAGE)] == [f"G{number}" for number in range(1, 14)]
    assert [match[1] for match in PROMISE.finditer(PITFALLS)] == [f"P{number}" for number in range(1, 30)]


def is_there(file: str, name: str) -> bool:
    path = ROOT / file
    return path.exists() and f"def {name}(" in path.read_text(encoding="utf-8")
