"""Which parts of a node the store fails, where many calls make up one part: every end of it is told once.

Readiness is made of what parts report. One that says that the store fails it must also say when it no longer
does: at its first call that succeeds, whoever made it; or when it gives up, because then nobody waits.
"""

from penstock.errors import StoreUnavailable
from penstock.ports.events import StoreBack, StoreFailed, StoreGivenUp
from penstock.scheduler.ground import Ground


class Outages:
    """The parts that fail, and since when."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._since: dict[str, float] = {}

    def failed(self, part: str, error: StoreUnavailable, failures: int) -> None:
        """Tell that the store failed a call, for the `failures`-th time in a row."""
        self._since.setdefault(part, self._ground.monotonic())
        self._ground.emit(StoreFailed(part=part, error=str(error), failures=failures))

    def worked(self, part: str) -> None:
        """Take note of a call that succeeded; tell it if it is the first one since a failure."""
        since = self._since.pop(part, None)
        if since is not None:
            self._ground.emit(StoreBack(part=part, after=self._ground.monotonic() - since))

    def gave_up(self, part: str) -> None:
        """Tell that the call is not made again: somebody else deals with what it was for."""
        if self._since.pop(part, None) is not None:
            self._ground.emit(StoreGivenUp(part=part))
