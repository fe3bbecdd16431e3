"""What no lane can work with, though each setting by itself is written well: refused before it is put.

Triggers refuse the same to plain SQL (migration `sense`), but for a host's name or port that cannot be: that
is seen when a job is sent. What was written before they did stays as it is, and nodes go by the nearest value
that works.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from penstock.domain.durations import format_duration, parse_duration
from penstock.domain.retry import RetrySchedule
from penstock.errors import InvalidSetting

SHORTEST_LEASE: Final = timedelta(seconds=1)
SHORTEST_POLL: Final = timedelta(milliseconds=20)
LONGEST_POLL: Final = timedelta(minutes=1)
BOUNDS: Final[Mapping[str, tuple[timedelta, timedelta]]] = MappingProxyType(
    {
        "lease": (SHORTEST_LEASE, timedelta.max),
        "poll_interval": (SHORTEST_POLL, LONGEST_POLL),
        "timeout": (timedelta(milliseconds=1), timedelta.max),
    }
)
HTTP: Final = "http"
LONGEST_LABEL: Final = 63  # between two dots of a host's name
_WITH_USER: Final = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
_UNSENDABLE: Final = re.compile(r"[\x00-\x20\x7f]")


def within(setting: str, duration: timedelta) -> timedelta:
    """Return the nearest value that works."""
    least, most = BOUNDS[setting]
    return min(max(least, duration), most)


def check_sense(settings: Mapping[str, object]) -> None:
    """Raise InvalidSetting for the first setting that cannot work."""
    for problem in nonsense(settings):
        raise problem


def nonsense(settings: Mapping[str, object]) -> Iterator[InvalidSetting]:
    """Yield what is wrong with each setting that cannot work."""
    for name, (least, most) in BOUNDS.items():
        duration = parse_duration(settings[name])
        if duration < least:
            yield InvalidSetting(
                name, f"{settings[name]} is too short: write {format_duration(least)} or more"
            )
        if duration > most:
            yield InvalidSetting(name, f"{settings[name]} is too long: write {format_duration(most)} or less")
    shape = RetrySchedule.from_text(str(settings["retry"])).shape
    if isinstance(shape, tuple) and shape[0]:
        first = format_duration(shape[0])
        yield InvalidSetting(
            "retry",
            f'the first attempt is made at once: write ["0s", "{first}"] to wait {first} before the second',
        )
    target = settings["target"]
    if target is not None and settings["sink"] == HTTP and (wrong := target_problem(str(target), sink=HTTP)):
        yield InvalidSetting("target", wrong)


def check_url(target: str) -> None:
    """Raise InvalidSetting unless HTTP can call it."""
    if problem := target_problem(target, sink=HTTP):
        raise InvalidSetting("target", problem)


def target_problem(target: str, *, sink: object = None) -> str | None:
    """Say what is wrong with a target; without its lane's `sink`, what is wrong with it anywhere.

    What it says does not repeat a password.
    """
    if _WITH_USER.match(target):
        return "holds a user name, which everybody sees: use an Authorization header of the job or the sink"
    if sink != HTTP or is_callable(target):
        return None
    if _is_web_address(target):
        return f"{target!r} has a port that cannot be: write one from 1 to 65535, or none"
    return f"{target!r} is no URL to call: write https://host/path"


def is_callable(target: str) -> bool:
    """Say whether it is the address of a web server: somebody may be there, or not."""
    if not _is_web_address(target):
        return False
    try:
        return urlsplit(target).port != 0  # where nobody can listen
    except ValueError:
        return False


def _is_web_address(target: str) -> bool:
    """Say whether it is one but for its port."""
    try:
        parts = urlsplit(target)
        host = parts.hostname
    except ValueError:
        return False
    # urlsplit overlooks blanks and control characters, which no request line can carry.
    if host is None or parts.scheme not in ("http", "https") or _UNSENDABLE.search(target):
        return False
    labels = host.removesuffix(".").split(".")
    return ":" in host or all(0 < len(label) <= LONGEST_LABEL for label in labels)
