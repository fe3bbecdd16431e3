"""The page of the API lists every address and every kind of problem."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text()
SOURCES = "".join(path.read_text() for path in (ROOT / "src" / "penstock" / "api").glob("*.py"))
ROUTE = re.compile(r'@(get|post|put|patch|delete)\(\s*"([^"]+)"')
KIND = re.compile(r'(?:Problem\(|\d{3}: \()\s*(?:\d{3},\s*)?"([a-z-]+)"')


def test_every_address_is_listed() -> None:
    routes = {
        f"`{method.upper()} {path.replace('job_id:str', 'id').replace(':str', '')}`"
        for method, path in ROUTE.findall(SOURCES)
    }

    assert len(routes) >= 10
    assert {route for route in routes if route not in PAGE} == set()


def test_every_kind_of_problem_is_listed() -> None:
    kinds = set(KIND.findall(SOURCES)) - {"refused", "internal"}

    assert {"bad-json", "wrong-host", "unknown-lane", "too-large"} <= kinds
    assert {kind for kind in kinds if f"`{kind}`" not in PAGE} == set()
