"""Databases that are made once and emptied: a fresh one each time would take most of the time."""

from urllib.parse import quote, urlencode, urlsplit

from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.store import SqlStore
from tests.servers import Server

_TABLES = (
    *("contexts", "revisions", "jobs", "claims", "requests", "groups", "keys", "attempts", "dead", "history"),
    *("counts", "audit"),
)
_ONLY_POSTGRES = ("wakes", "count_deltas")


def quick(server: Server, url: str, **settings: str) -> str:
    """Return the database's address by the shorter way, with commits that need not survive a crash."""
    settings = {"synchronous_commit": "off", **settings}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    query = {"host": str(server.home), "port": str(server.port), "options": options}
    return f"postgresql://postgres@/{urlsplit(url).path[1:]}?{urlencode(query, quote_via=quote)}"


def empty(store: SqlStore) -> None:
    """Remove everything but the lanes."""
    postgres = store.db.dialect == "postgres"
    tables = (*_TABLES, *_ONLY_POSTGRES) if postgres else _TABLES
    prefix = "penstock." if postgres else "penstock_"
    script = "".join(f"DELETE FROM {prefix}{table};\n" for table in tables)
    store.db.write(lambda tx: tx.script(script))


def restarted(store: SqlStore, hot: HotPath) -> SqlStore:
    """Return the store as a process that has just started sees it."""
    return SqlStore(store.db, hot, store.ids, store.migrations)
