"""What the process is made of, as a node tells it with its heartbeat."""

import os
from pathlib import Path
from typing import Final

from penstock.observability.live import Live

STATM: Final = Path("/proc/self/statm")  # pages: of the whole address space, then those in memory


def memory(statm: Path = STATM) -> int | None:
    """Return how many bytes of memory the process has now; None = this system does not say."""
    try:
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def process_figures(live: Live) -> dict[str, int]:
    """Return what belongs into a node's note (domain/notes.py): memory, and how late its event loop is."""
    found = {"loop_delay_us": round(live.loop_delay() * 1_000_000)}
    taken = memory()
    return found if taken is None else found | {"memory": taken}
