"""What the numbers were measured on, and whether anybody else was using it."""

import os
import platform
import sqlite3
import subprocess
import time
from pathlib import Path

import psycopg

BUSY = 0.15


def busy_share(seconds: float = 0.5) -> float:
    """Return the share of all cores that somebody used during the next moment, while we only wait."""
    before = _cpu_times()
    time.sleep(seconds)
    total, idle = (after - then for after, then in zip(_cpu_times(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _cpu_times() -> tuple[int, int]:
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def wait_until_quiet(patience: float, say) -> bool:  # noqa: ANN001
    """Wait for an idle machine, at most so many seconds; False = it was not idle, and that was said."""
    end = time.monotonic() + patience
    while (share := busy_share()) > BUSY:
        if time.monotonic() > end:
            say(f"not quiet: others use {share:.0%} of the machine")
            return False
    return True


def load() -> float:
    return round(os.getloadavg()[0], 2)


def describe() -> dict[str, str]:
    """Return the machine and the versions, for the head of the results."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpuinfo if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1_048_576
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "machine": f"{os.cpu_count()} x {model}, {memory} GiB, {platform.system()} {platform.release()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__})",
        "commit": commit,
    }
