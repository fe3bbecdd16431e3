"""Every statement a store call runs on PostgreSQL, with the plan it had.

A spying cursor explains each statement in a transaction that is rolled back, before it runs for real: so
each is seen in the very state it meets, with its own parameters. It is planned twice: for these parameters,
and for any parameters, which is the plan PostgreSQL keeps after a statement has run five times.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

BIG_TABLES: Final = ("jobs", "groups", "contexts", "history", "dead", "wakes", "attempts")
PLANS: Final = ("custom", "generic")
_PARAMETER: Final = re.compile(r"%\((\w+)\)s|%s|%%")


@dataclass(frozen=True, slots=True)
class Scan:
    """One visit of a table in a plan: rows are those of all its loops, with those read in vain."""

    table: str
    index: str | None
    node: str
    rows: int

    def __str__(self) -> str:
        return f"{self.node} on {self.table} by {self.index or 'nothing'}: {self.rows} rows"


@dataclass(frozen=True, slots=True)
class Seen:
    """A statement with the scans of one of its plans."""

    sql: str
    plan: str
    scans: tuple[Scan, ...]

    def by_index(self) -> set[tuple[str, str]]:
        """Return which index each table was read by."""
        return {(scan.table, scan.index) for scan in self.scans if scan.index is not None}


@dataclass
class Spy:
    """Collects what cursors of one connection execute, while it listens."""

    seen: list[Seen] = field(default_factory=list)
    listens: bool = False

    def watch(self, connection: psycopg.Connection[Any]) -> None:
        """Make the connection's cursors tell."""
        spy = self

        class SpyingCursor(psycopg.Cursor[Any]):
            def execute(self, query: Any, params: Any = None, **options: Any) -> Any:  # noqa: ANN401
                if spy.listens and params is not None:
                    spy.explain(self.connection, query, params)
                return super().execute(query, params, **options)

        connection.cursor_factory = SpyingCursor
        # What is queued goes one by one: in between, the plan of the next is asked for.
        connection.pipeline = connection.transaction  # type: ignore[method-assign, assignment]

    def explain(self, connection: psycopg.Connection[Any], query: str, params: Any) -> None:  # noqa: ANN401
        """Note both plans of the statement; nothing of it stays."""
        values: list[Any] = []
        numbers: dict[str, int] = {}

        def number(match: re.Match[str]) -> str:
            if match[0] == "%%":
                return "%"
            name = match[1] or str(len(numbers))
            if name not in numbers:
                numbers[name] = len(numbers) + 1
                values.append(params[match[1]] if match[1] else params[len(numbers) - 1])
            return f"${numbers[name]}"

        statement = _PARAMETER.sub(number, query)
        plain = psycopg.ClientCursor(connection)
        inside = connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        plain.execute("SAVEPOINT spy" if inside else "BEGIN")
        plain.execute(f"PREPARE spied AS {statement}".encode())
        marks = ", ".join(["%s"] * len(values))
        call = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE spied{f'({marks})' if values else ''}"
        for plan in PLANS:
            plain.execute("SAVEPOINT plan")
            plain.execute(f"SET LOCAL plan_cache_mode = force_{plan}_plan".encode())
            [[[explained]]] = plain.execute(call.encode(), values).fetchall()
            plain.execute("ROLLBACK TO plan")
            self.seen.append(Seen(query, plan, tuple(_scans(explained["Plan"]))))
        plain.execute("DEALLOCATE spied")
        plain.execute("ROLLBACK TO spy" if inside else "ROLLBACK")


def _scans(node: dict[str, Any]) -> Iterator[Scan]:
    relation = str(node.get("Relation Name", ""))
    if node["Node Type"].endswith("Scan") and relation:
        removed = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
        rows = round((node["Actual Rows"] + removed) * node["Actual Loops"])
        # A partition, and its index, are known by their parent's name.
        table = re.sub(r"_\d+_\d{8}$", "", relation)
        index = re.sub(r"_\d+_\d{8}", "", node["Index Name"]) if "Index Name" in node else None
        yield Scan(
            table, index or ("ctid" if node["Node Type"] == "Tid Scan" else None), node["Node Type"], rows
        )
    for child in node.get("Plans", ()):
        yield from _scans(child)
