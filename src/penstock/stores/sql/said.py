"""What enqueue objects say, by column: a bulk load is looked at twenty times, not twenty times per job.

A column in which every job says the usual is left out, and one in which all say the same is said once: the
databases need neither, and most bulk loads differ in little more than their payloads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.domain.job import NewJob
from penstock.domain.ordering import DEFAULT_SEQUENCE, MAX_SEQUENCE
from penstock.stores.sql.hotpath import LaneRow

Column = Sequence[Any]
Said = Mapping[str, Column]
# The column of `contexts` that each field becomes; the lane, its mode and the id are looked at apart.
_COLUMNS: Final = {
    name: {"group": "message_group"}.get(name, name)
    for name in NewJob._fields
    if name not in ("lane", "mode", "id")
}
_USUAL: Final = {"sequence": DEFAULT_SEQUENCE}


class Columns(NamedTuple):
    """New rows of `contexts`: what all of them share, and what each has of its own; nothing else was said."""

    rows: int
    shared: Mapping[str, Any]
    own: Mapping[str, Column]


def said(jobs: Sequence[NewJob]) -> Said:
    """Return the fields of the jobs, each as a column."""
    return dict(zip(NewJob._fields, zip(*jobs, strict=True), strict=True))


def nobody_said(column: Column, usual: object = None) -> bool:
    """Say whether every job left this field as it usually is."""
    return column[0] == usual and column.count(usual) == len(column)


def in_range(sequences: Sequence[int]) -> bool:
    """Say whether every job can be given its place."""
    return nobody_said(sequences, DEFAULT_SEQUENCE) or (
        min(sequences) >= 0 and max(sequences) <= MAX_SEQUENCE
    )


def by_column(fields: Said, lanes: Mapping[str, LaneRow], ids: Sequence[str]) -> Columns:
    """Return the rows that these jobs become in their lanes, under these ids."""
    columns = {
        column: fields[name]
        for name, column in _COLUMNS.items()
        if not nobody_said(fields[name], _USUAL.get(name))
    }
    shared = {name: column[0] for name, column in columns.items() if _alike(column)}
    own = {name: column for name, column in columns.items() if name not in shared}
    names, modes = fields["lane"], fields["mode"]
    if _alike(names) and _alike(modes):
        homes, modes = [lanes[names[0]]], modes[:1]
    else:
        homes = [lanes[name] for name in names]
    placed: dict[str, Column] = {
        "keep": [lane.keep for lane in homes],
        "lane": [lane.id for lane in homes],
        "mode": [int(lane.mode if m is None else m) for lane, m in zip(homes, modes, strict=True)],
    }
    for name, column in placed.items():
        if _alike(column):
            shared[name] = column[0]
        else:
            own[name] = column
    return Columns(len(ids), shared, {**own, "id": ids})


def _alike(column: Column) -> bool:
    # The last is looked at first: where values differ at all, most often these two do.
    return column[0] == column[-1] and column.count(column[0]) == len(column)
