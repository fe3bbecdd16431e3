"""News: a wait that ends sooner because somebody said so."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest

from penstock.ports.store import Store
from penstock.ports.wakeups import Wakeups
from penstock.testing.store_suite.factories import LANE, enqueue, job, put_lane, together

LONG = timedelta(seconds=30)
SOON = timedelta(milliseconds=20)


@contextmanager
def listening(store: Store) -> Iterator[Wakeups]:
    """Give a listener that has heard everything up to now."""
    wakeups = store.wakeups()
    if wakeups is None:
        pytest.skip("this store has no news to tell")
    with closing(wakeups):
        assert wakeups.wait(LONG) == frozenset(), "the first wait does not know what was before it"
        while wakeups.wait(SOON) is not None:
            pass
        yield wakeups


class WakingTests:
    """Wake-ups."""

    def test_without_news_a_wait_ends_when_its_time_is_up(self, store: Store) -> None:
        """Reading is no news."""
        put_lane(store)
        with listening(store) as wakeups:
            store.scout()
            store.lanes()

            assert wakeups.wait(SOON) is None
            assert wakeups.wait(timedelta(0)) is None

    def test_new_jobs_end_a_wait(self, store: Store) -> None:
        """Of which lane may be known, or not; what is said once is heard once."""
        put_lane(store)
        with listening(store) as wakeups:
            enqueue(store, job())
            store.wake([LANE])
            assert wakeups.wait(LONG) in (frozenset({LANE}), frozenset())
            while wakeups.wait(SOON) is not None:
                pass

            enqueue(store, job())
            _, news = together(lambda: store.wake([LANE]), lambda: wakeups.wait(LONG))
            assert news is not None

    def test_everybody_who_listens_hears(self, store: Store) -> None:
        """Several nodes wait for the same lanes."""
        put_lane(store)
        with listening(store) as one, listening(store) as another:
            enqueue(store, job())
            store.wake([LANE, "other"])
            for wakeups in (one, another):
                assert wakeups.wait(LONG) in (frozenset({LANE, "other"}), frozenset({LANE}), frozenset())

    def test_news_of_no_lane_in_particular_is_news(self, store: Store) -> None:
        """Somebody did something somewhere; so are news of very many lanes."""
        put_lane(store)
        with listening(store) as wakeups:
            enqueue(store, job())
            store.wake([])
            assert wakeups.wait(LONG) == frozenset()
        with listening(store) as wakeups:
            enqueue(store, job())
            store.wake([f"lane-{number}" for number in range(1000)])
            assert wakeups.wait(LONG) is not None

    def test_a_wait_ends_when_its_listener_is_closed(self, store: Store) -> None:
        """From another thread, at once; a closed one waits for nothing."""
        with listening(store) as wakeups:
            news, _ = together(lambda: wakeups.wait(LONG), wakeups.close)
            assert news is None
            assert wakeups.wait(LONG) is None

    def test_waking_nobody_is_no_error(self, store: Store) -> None:
        """However often; nothing depends on it."""
        for number in range(1000):
            store.wake([f"lane-{number % 7}", "odd \"'\\ name"])
