"""The wall clock of one process, set by a test; its monotonic clock goes on as before."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.servers import missing

LIBRARIES: Final = "*/faketime/libfaketimeMT.so.1"


class Clock:
    """Give `environment` to a process, and set its clock with `step`."""

    def __init__(self, folder: Path) -> None:
        libraries = sorted(Path("/usr/lib").glob(LIBRARIES))
        if not libraries:
            missing("faketime is not installed (tools/install-services.sh, as root)")
        self._file = folder / "clock"
        self.offset = timedelta(0)
        self.environment = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }
        self.step(timedelta(0))

    def drift(self, rate: float) -> None:
        """Let the clock run that fast; of a slow one the library stretches the waits as well."""
        self._set(f"+0 x{rate:g}")

    def step(self, offset: timedelta) -> None:
        """Set the clock to this far from the true time."""
        self.offset = offset
        self._set(f"{offset.total_seconds():+.0f}")

    def _set(self, words: str) -> None:
        whole = self._file.with_suffix(".new")
        whole.write_text(f"{words}\n")
        whole.rename(self._file)
