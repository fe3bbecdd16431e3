"""What others wrote and we ship, or test with: exactly the files that were taken, each with its licence."""

from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "src/penstock/ui/static/vendor"
TESTED_WITH = ROOT / "tests/ui/vendor"
# A new version is a new name and a new line: look at what changed, and record `sha256sum` of what was taken.
TAKEN = {
    "htmx-4.0.0.min.js": "e484d9171a9db30a39c8f16e3d709d4137f3211c659f8e6125816635033d593f",
    "uplot-1.6.32.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot-1.6.32.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "axe-4.14.0.min.js": "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878",
}
LICENCES = {
    "htmx": "Zero-Clause BSD",
    "uplot": "The MIT License",
    "axe": "Mozilla Public License, version 2.0",
}


def test_every_file_is_the_one_that_was_taken() -> None:
    files = [file for folder in (SHIPPED, TESTED_WITH) for file in folder.iterdir()]
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in files}

    assert {name: found[name] for name in found if not name.endswith("-LICENSE.txt")} == TAKEN


@pytest.mark.parametrize("folder", [SHIPPED, TESTED_WITH], ids=["shipped", "tested with"])
def test_every_file_has_its_licence_beside_it(folder: Path) -> None:
    projects = {file.name.partition("-")[0] for file in folder.iterdir()}

    assert projects
    for project in projects:
        assert (folder / f"{project}-LICENSE.txt").read_text(encoding="utf-8").startswith(LICENCES[project])
