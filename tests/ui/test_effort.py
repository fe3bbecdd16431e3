"""What a row of a list takes to show, in calls of Python functions: they are what a page's time goes to.

Threads that made a page rest for many times as long as they computed, so that what is sent is not held up:
whoever goes from page to page waits for what each row takes, many times over.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from inspect import CO_GENERATOR
from types import FrameType
from typing import Final

import pytest

from penstock import Client
from penstock.domain.job import Enqueued
from penstock.domain.lanes import lane
from penstock.domain.states import Verb
from penstock.stores.sqlite.store import SqliteStore
from tests.api.node import Http, served

FEW: Final = 10
MANY: Final = 40
LISTS: Final = {
    "/jobs?q=lane:{lane}+state:pending": 180,
    "/jobs?q=lane:{lane}+state:pending+run<0s": 180,
    "/groups?lane={lane}&show=all": 250,
    "/history?lane={lane}": 130,
}


class Calls:
    """Python calls of the threads that make pages."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count in the threads that begin within the block."""
        threading.setprofile(self._note)
        try:
            yield
        finally:
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002
        if event != "call" or frame.f_code.co_flags & CO_GENERATOR:  # which is called for each of its yields
            return
        if threading.current_thread().name.startswith("test-api"):
            self.count += 1

    def of(self, call: Callable[[], object]) -> int:
        """Return how many calls something takes."""
        before = self.count
        call()
        return self.count - before


def _fill(client: Client, name: str, jobs: int) -> None:
    """Give a lane so many groups with a job that waits, and as many jobs that ended."""
    client.store.put_lane(lane(name, mode="block_on_error"), actor="test")
    made = client.enqueue_many({"lane": name, "group": f"group-{n}", "payload": n} for n in range(2 * jobs))
    ended = [answer.id for answer in made[jobs:] if isinstance(answer, Enqueued)]
    client.store.operate(Verb.CANCEL, ended, actor="test", reason="test")


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Http, Calls]]:
    calls, path = Calls(), tmp_path_factory.mktemp("effort") / "penstock.db"
    with closing(SqliteStore(path)) as store:
        store.migrate()
        client = Client(store)
        _fill(client, "few", FEW)
        _fill(client, "many", MANY)
        with calls.listening(), served(client) as http:
            yield http, calls


@pytest.mark.parametrize("path", LISTS)
def test_a_row_takes_few_calls(counted: tuple[Http, Calls], path: str) -> None:
    http, calls = counted

    def look(name: str) -> None:
        answer = http.get(path.format(lane=name), headers={"Accept": "text/html"})
        assert answer.text.count("data-row") == (FEW if name == "few" else MANY), answer.text[:500]

    def least(name: str) -> int:
        """Return what it takes when nothing is made anew that all pages share."""
        return min(calls.of(lambda: look(name)) for _ in range(4))

    a_row = (least("many") - least("few")) / (MANY - FEW)
    assert 0 < a_row <= LISTS[path]
