"""Whether the ground is firm: a store that keeps what it was given, power cut or not, and clocks that agree.

What the database says of itself, and where its file is. `penstock check` shows it all; a node that starts
logs what is wrong.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from penstock.domain.secrets import NAMES, TOKEN, WEBHOOK
from penstock.ports.store import Store
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.store import SqlStore


class Health(NamedTuple):
    """One setting of the database; `advice` is what to do about it, empty when it is as it should be."""

    setting: str
    value: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.setting} = {self.value}" + (f": {self.advice}" if self.advice else "")


MAX_SKEW: Final = timedelta(seconds=2)
_NETWORKED: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3"}
)
_SYNCHRONOUS: Final[Mapping[int, str]] = {0: "off", 1: "normal", 2: "full", 3: "extra"}
_UNSIGNED: Final[Mapping[str, str]] = {
    WEBHOOK: "what is sent over HTTP is not signed",
    TOKEN: "lanes of format pointer send nothing",
}
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


def skew(store: Store, now: Callable[[], datetime]) -> list[Health]:
    """Return by how much the store's clock and this machine's differ, if that is worth knowing.

    The store looked at its clock some time between our question and its answer: a late answer says little.
    """
    asked, there = now(), store.now()
    doubt = (now() - asked) / 2
    off = abs(asked + doubt - there)
    if off - doubt <= MAX_SKEW:
        return []
    return [Health("clock", f"{off.total_seconds():.0f} s off this machine's", "let both keep time by NTP")]


def disk_of(file: str | None, mounts: str) -> list[Health]:
    """Return what holds a database file if it is no disk of this machine; `mounts` is /proc/self/mounts."""
    if file is None:
        return []
    folder, place, kind = Path(file).absolute().parent, Path("/"), ""
    for line in mounts.splitlines():
        _, point, found = line.split(" ")[:3]
        mounted = Path(point.replace("\\040", " "))
        if folder.is_relative_to(mounted) and mounted.is_relative_to(place):
            place, kind = mounted, found
    if kind not in _NETWORKED:
        return []
    return [Health("file system", kind, "locks do not hold over a network: keep the file on a local disk")]


def worries(store: Store, *, now: Callable[[], datetime], file: str | None) -> list[Health]:
    """Return everything about the ground that needs a person."""
    found = [*durability(store), *skew(store, now), *disk_of(file, _mounts())]
    return [health for health in found if health.advice]


def missing_keys(store: Store) -> list[str]:
    """Return what goes wrong without keys that the store lacks, and the command that makes them.

    A migration applied by hand makes none: only `penstock migrate` can draw what nobody may guess.
    """
    return [
        f"there is no key {name}, so {_UNSIGNED[name]}: run penstock migrate"
        for name in NAMES
        if not any(secret.retired_at is None for secret in store.secrets(name))
    ]


def _mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not every system has it


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
