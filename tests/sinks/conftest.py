"""Threads for blocking calls, as a node has them."""

from collections.abc import Iterator

import pytest

from penstock.ports.executor import ThreadExecutor

collect_ignore = ["example"]  # a package of its own; test_example.py installs it


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    with ThreadExecutor(2, name="test") as threads:
        yield threads
