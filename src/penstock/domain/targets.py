"""What a job is sent to, as breakers and limits know it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from penstock.domain.job import Job
from penstock.domain.lanes import Lane
from penstock.domain.limits import Limit
from penstock.domain.pools import Pool
from penstock.errors import InvalidQuery

LONGEST: Final = 500
GROUPS: Final = "groups"
_PORTS: Final = {"http": 80, "https": 443}
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")  # no store keeps it


@lru_cache(maxsize=4096)
def target_of(url: str | None) -> str | None:
    """Return scheme, host and port, in small letters and without credentials; None = it is no URL.

    A port that the scheme has anyway is left out: it is the same target.
    """
    try:
        parts = urlsplit(url or "")
        if not parts.netloc:
            return None
        host, port = parts.netloc.rpartition("@")[2].lower(), parts.port
    except ValueError:  # written by plain SQL; its sink will say what is wrong with it
        return None
    name, colon, digits = host.rpartition(":")
    if colon and not digits.endswith("]"):  # that is the end of an IPv6 address
        host = name if port in (None, _PORTS.get(parts.scheme)) else f"{name}:{port}"
    return f"{parts.scheme}://{host}"


def paused_name(url: str) -> str:
    """Return the target of a URL that an operator names, or raise InvalidQuery."""
    name = target_of(url) if not _NO_TEXT.search(url) else None
    if name is None or len(name) > LONGEST:
        raise InvalidQuery(
            "target", f"{url[:80]!r} is none: say scheme and host, like https://api.example.org"
        )
    return name


def target_name(job: Job, lane: Lane) -> str | None:
    """Return what the job's calls go to."""
    return target_of((job.context.target if job.context else None) or lane["target"])


def pool_of(job: Job, lane: Lane, pools: Mapping[str, Pool]) -> Pool | None:
    """Return the pool that the job counts against: its own, or its lane's if it names none that there is."""
    own = job.context.pool if job.context else None
    return pools.get(own or "") or pools.get(lane["pool"] or "")


def lane_limit(lane: Lane) -> Limit:
    """Return the lane's own limit, by name."""
    return Limit("lane", lane.name)


def groups_limit(lane: Lane) -> Limit:
    """Return the limit on the lane's groups in flight, by name."""
    return Limit("lane", lane.name, GROUPS)


def pool_limit(job: Job, lane: Lane, pool: Pool) -> Limit:
    """Return the limit of a pool that the job counts against, or of one key of it, by name."""
    match pool.key:
        case "tenant":
            key = job.live.tenant or ""
        case "group":
            key = f"{lane.name}/{job.live.grp or ''}"
        case "target":
            key = target_name(job, lane) or ""
        case _:
            key = ""
    return Limit("pool", pool.name, key)
