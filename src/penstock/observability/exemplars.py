"""The trace that a call belonged to: from the sink that traced it to the histograms that count it.

A sink is called and its answer told of in one task, so a context variable carries it; the engine between the
two knows nothing of traces.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

_OF_CALL: Final[ContextVar[Mapping[str, str] | None]] = ContextVar("penstock_exemplar", default=None)


def note_span(trace_id: int, span_id: int) -> None:
    """Say which span the call was that this task makes."""
    _OF_CALL.set({"trace_id": f"{trace_id:032x}", "span_id": f"{span_id:016x}"})


def note_none() -> None:
    """Say that the call has no span that anybody keeps."""
    _OF_CALL.set(None)


def exemplar() -> dict[str, str] | None:
    """Return the span of the last call of this task, as labels of an exemplar."""
    found = _OF_CALL.get()
    return None if found is None else dict(found)
