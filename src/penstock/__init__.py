"""Durable dispatch scheduler: jobs leave their database on time, in order, no faster than allowed.

These names, `penstock.ports` and `penstock.testing` are public; all else may change. Each is imported when it
is first used, so that `import penstock` and the command line stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.async_client import AsyncClient
    from penstock.client import Client, connect
    from penstock.domain.filters import Span
    from penstock.domain.job import Enqueued, Job, NewJob
    from penstock.domain.ordering import Mode
    from penstock.domain.payloads import Json
    from penstock.domain.states import JobState
    from penstock.errors import (
        InvalidCursor,
        InvalidJob,
        InvalidQuery,
        InvalidSetting,
        KeyConflict,
        LaneFull,
        NotFound,
        PenstockError,
        SchemaMismatch,
        StoreUnavailable,
        UnknownLane,
    )

__version__ = "0.1.0.dev0"
__all__ = [
    "AsyncClient",
    "Client",
    "Enqueued",
    "InvalidCursor",
    "InvalidJob",
    "InvalidQuery",
    "InvalidSetting",
    "Job",
    "JobState",
    "Json",
    "KeyConflict",
    "LaneFull",
    "Mode",
    "NewJob",
    "NotFound",
    "PenstockError",
    "SchemaMismatch",
    "Span",
    "StoreUnavailable",
    "UnknownLane",
    "connect",
]
_HOMES = {
    "AsyncClient": "async_client",
    "Client": "client",
    "connect": "client",
    "Enqueued": "domain.job",
    "Job": "domain.job",
    "NewJob": "domain.job",
    "Mode": "domain.ordering",
    "Json": "domain.payloads",
    "JobState": "domain.states",
    "Span": "domain.filters",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
