"""The schema: numbered plain SQL files, applied forward only, the same numbers in every dialect.

A file `migrations/0007_group_index.sql` begins with two header lines. `-- phase: expand` adds what old code
does not mind, `contract` takes away what only old code used. `-- breaking: yes` says that a version of
Penstock that does not know the file must not run on the result: it refuses to start, while it goes on beside
a newer migration that is not breaking, which is how nodes are upgraded one after the other.

Each file is one transaction that begins with the dialect's `bootstrap.sql`: a lock, so that of two migrators
the second waits and finds nothing left to do, and the table in which the migration then notes itself. An
applied file never changes; its checksum is compared every time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Final

from penstock import __version__
from penstock.errors import SchemaMismatch
from penstock.stores.sql.database import Database, Tx

_FILE: Final = re.compile(r"(([0-9]{4})_[a-z0-9_]+)\.sql")
_HEADER: Final = re.compile(r"-- phase: (expand|contract)\n-- breaking: (no|yes)\n")
_EXISTS: Final[Mapping[str, str]] = {
    "postgres": "SELECT to_regclass('penstock.migrations')::text",
    "sqlite": "SELECT max(name) FROM sqlite_master WHERE name = 'penstock_migrations'",
}
_TABLE: Final[Mapping[str, str]] = {"postgres": "penstock.migrations", "sqlite": "penstock_migrations"}
_IN_THE_WAY: Final = re.compile("already exists|duplicate column|no such|does not exist")
APPLIED: Final = "SELECT number, name, checksum, breaking FROM penstock.migrations ORDER BY number"
RECORD: Final = """
    INSERT INTO penstock.migrations (number, name, checksum, breaking)
    VALUES (:number, :name, :checksum, :breaking)"""


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration as the database has noted it."""

    number: int
    name: str
    checksum: str
    breaking: bool


@dataclass(frozen=True, slots=True)
class Migration(Applied):
    """A migration as this version of Penstock brings it."""

    phase: str
    sql: str


def load(package: str) -> list[Migration]:
    """Return the package's migrations, lowest number first."""
    folder = files(package) / "migrations"
    found = [
        _read(match, file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    return sorted(found, key=lambda migration: migration.number)


def migrate(db: Database, package: str) -> list[str]:
    """Apply what is missing, each file in a transaction of its own; return the names of those applied now."""
    known, bootstrap, done = load(package), _bootstrap(package), []

    def apply_next(tx: Tx) -> str | None:
        tx.script(bootstrap)
        missing = _missing(known, _applied(tx))
        if not missing:
            return None
        first = missing[0]
        tx.execute(
            RECORD, number=first.number, name=first.name, checksum=first.checksum, breaking=first.breaking
        )
        try:
            tx.script(first.sql)
        except Exception as error:
            if _IN_THE_WAY.search(str(error)) is None:
                raise
            raise _unfit(first, error) from error
        return first.name

    while (name := db.write(apply_next)) is not None:
        done.append(name)
    return done


def _unfit(migration: Migration, error: Exception) -> SchemaMismatch:
    """Return what to do about tables that are not as the migrations before this one left them."""
    [said, *_] = str(error).splitlines()
    return SchemaMismatch(
        f"migration {migration.name} does not fit the tables ({said}); nothing of it was applied",
        "if somebody has applied it by hand, note it in the table of migrations with the INSERT that"
        f" `penstock migrate --print --after {migration.number - 1}` shows; else make way for it",
    )


def check_schema(db: Database, package: str) -> None:
    """Raise SchemaMismatch unless this version of Penstock can work on the tables as they are."""
    known = load(package)
    applied = db.read(lambda tx: _applied(tx) if tx.fetch(_EXISTS[db.dialect])[0][0] else [])
    if missing := _missing(known, applied):
        has = f"is at {applied[-1].name}" if applied else "has no Penstock tables"
        raise SchemaMismatch(f"the database {has}, {missing[-1].name} is needed", "run penstock migrate")


def render(package: str, *, after: int = 0) -> str:
    """Return the SQL of every migration above a number, as `migrate` would run it, for a DBA to apply."""
    table = _TABLE[package.rpartition(".")[2]]
    bootstrap = _bootstrap(package).strip()
    transactions = [
        f"BEGIN;\n{bootstrap}\n"
        f"INSERT INTO {table} (number, name, checksum, breaking)\n"
        f"VALUES ({m.number}, '{m.name}', '{m.checksum}', {str(m.breaking).lower()});\n\n"
        f"{m.sql.strip()}\nCOMMIT;\n"
        for m in load(package)
        if m.number > after
    ]
    note = (
        f"-- Penstock {__version__}: migrations after number {after}, one transaction each.\n"
        "-- Stop at the first error (psql -v ON_ERROR_STOP=1, sqlite3 -bail).\n"
    )
    return "\n".join([note, *transactions])


def _read(file: re.Match[str], text: str) -> Migration:
    header = _HEADER.match(text)
    if header is None:
        raise ValueError(f"{file[0]} does not begin with -- phase: expand|contract and -- breaking: no|yes")
    return Migration(
        number=int(file[2]),
        name=file[1],
        checksum=sha256(text.encode()).hexdigest(),
        breaking=header[2] == "yes",
        phase=header[1],
        sql=text,
    )


def _bootstrap(package: str) -> str:
    return (files(package) / "migrations" / "bootstrap.sql").read_text(encoding="utf-8")


def _applied(tx: Tx) -> list[Applied]:
    return [
        Applied(number, name, checksum, bool(breaking))
        for number, name, checksum, breaking in tx.fetch(APPLIED)
    ]


def _missing(known: Sequence[Migration], applied: Sequence[Applied]) -> list[Migration]:
    """Return what the database lacks, or raise SchemaMismatch when it is not one this version may touch."""
    ours = {migration.number: migration for migration in known}
    for theirs in applied:
        mine = ours.pop(theirs.number, None)
        if mine is None:
            if theirs.breaking:
                raise SchemaMismatch(
                    f"the database has migration {theirs.name}, which this version does not know",
                    "upgrade penstock",
                )
        elif mine.checksum != theirs.checksum:
            raise SchemaMismatch(
                f"migration {mine.name}.sql is not the one that was applied to this database",
                "put back the original file: a change of the schema is a new migration",
            )
    return list(ours.values())
