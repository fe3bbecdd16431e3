"""Whether a store keeps what it was given when the power fails: what the database itself says about that."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.ports.store import Store
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.store import SqlStore


class Health(NamedTuple):
    """One setting of the database; `advice` is what to do about it, empty when it is as it should be."""

    setting: str
    value: str
    advice: str = ""


_SYNCHRONOUS: Final[Mapping[int, str]] = {0: "off", 1: "normal", 2: "full", 3: "extra"}
_LOSES: Final = "a crash may lose jobs that were accepted"
_POSTGRES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "fsync": (frozenset({"on"}), f"{_LOSES}: set fsync = on"),
    "full_page_writes": (frozenset({"on"}), "a crash may damage the database: set full_page_writes = on"),
    "synchronous_commit": (
        frozenset({"on", "local", "remote_write", "remote_apply"}),
        f"{_LOSES}: set synchronous_commit = on for this user or database",
    ),
}


def durability(store: Store) -> list[Health]:
    """Return what the store's own connections run with."""
    if not isinstance(store, SqlStore):
        return [Health("memory", "yes", "nothing outlives this process")]
    return store.db.read(_sqlite if store.db.dialect == "sqlite" else _postgres)


def _sqlite(tx: Tx) -> list[Health]:
    journal = str(_value(tx.fetch("PRAGMA journal_mode")))
    level = int(str(_value(tx.fetch("PRAGMA synchronous"))))
    wal = (
        ""
        if journal == "wal"
        else "readers and the writer wait for each other: keep the file on a local disk"
    )
    return [
        Health("journal_mode", journal, wal),
        Health("synchronous", _SYNCHRONOUS[level], "" if level >= 2 else _LOSES),
    ]


def _postgres(tx: Tx) -> list[Health]:
    found = []
    for setting, (good, advice) in _POSTGRES.items():
        value = str(_value(tx.fetch("SELECT current_setting(:setting)", setting=setting)))
        found.append(Health(setting, value, "" if value in good else advice))
    return found


def _value(rows: list[Row]) -> object:
    return rows[0][0]
