"""The conformance suite: what every store must do, whoever wrote it.

    from penstock.testing.store_suite import StoreSuite

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def store(self) -> Iterator[Store]:
            ...  # fresh and migrated

That fixture is all it needs. The suite never sleeps and never moves a clock: what must be in the past is put
there (`run_at`, a lease or a deadline of minus one second), so it runs on a database's own clock as well.
"""

from pkgutil import iter_modules

import pytest

# So that a failing assert of the suite says as much as one in a test file.
pytest.register_assert_rewrite(*(f"{__name__}.{topic.name}" for topic in iter_modules(__path__)))

from penstock.testing.store_suite.suite import StoreSuite  # noqa: E402

__all__ = ["StoreSuite"]
