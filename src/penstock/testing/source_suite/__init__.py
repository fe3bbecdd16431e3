"""The conformance suite: what every source must do, whoever wrote it.

    from penstock.testing.source_suite import SourceBed, SourceSuite

    class TestMySource(SourceSuite):
        @pytest_asyncio.fixture
        async def bed(self) -> AsyncIterator[SourceBed]:
            ...  # a broker of your kind, really running, with empty queues

That fixture is all it needs (and pytest-asyncio). A bed knows how to open the source, and how messages get
into its queues. The suite waits for what must come, for at most a minute.
"""

from pkgutil import iter_modules

import pytest

# So that a failing assert of the suite says as much as one in a test file.
pytest.register_assert_rewrite(*(f"{__name__}.{topic.name}" for topic in iter_modules(__path__)))

from penstock.testing.source_suite.bed import SourceBed  # noqa: E402
from penstock.testing.source_suite.suite import SourceSuite  # noqa: E402

__all__ = ["SourceBed", "SourceSuite"]
