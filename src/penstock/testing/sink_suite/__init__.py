"""The conformance suite: what every sink must do, whoever wrote it.

    from penstock.testing.sink_suite import SinkBed, SinkSuite

    class TestMySink(SinkSuite):
        @pytest_asyncio.fixture
        async def bed(self) -> AsyncIterator[SinkBed]:
            ...  # a receiver of your kind, really running

That fixture is all it needs (and pytest-asyncio). A bed knows how to open the sink, how to address a message
to itself, and what arrived. The suite never sleeps: it waits for what must arrive, for at most ten seconds.
"""

from pkgutil import iter_modules

import pytest

# So that a failing assert of the suite says as much as one in a test file.
pytest.register_assert_rewrite(*(f"{__name__}.{topic.name}" for topic in iter_modules(__path__)))

from penstock.testing.sink_suite.bed import Arrived, SinkBed  # noqa: E402
from penstock.testing.sink_suite.suite import SinkSuite  # noqa: E402

__all__ = ["Arrived", "SinkBed", "SinkSuite"]
