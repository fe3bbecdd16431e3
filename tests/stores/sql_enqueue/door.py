"""The way in for other languages, as they see it: a view, a connection, and errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg

from penstock.domain.lanes import lane as lane_of
from penstock.ports.store import Ask, Store
from penstock.stores.connect import connect
from tests.stores.places import Place, Plain

NUMBERS = count(1)


@dataclass
class Door:
    """A database with Penstock's tables; a test makes lanes of its own, or shows that `empty` stays so."""

    place: Place
    store: Store
    sql: Plain
    empty: str = "empty"

    @property
    def is_postgres(self) -> bool:
        return self.place.server is not None

    def lane(self, **settings: object) -> str:
        """Return the name of a new lane."""
        name = f"lane-{next(NUMBERS)}"
        self.store.put_lane(lane_of(name, **settings), actor="test")
        return name

    def insert(self, **columns: object) -> None:
        """Insert one row."""
        names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        self.sql(f"INSERT INTO penstock.enqueue ({names}) VALUES ({marks})", *columns.values())

    def insert_rows(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Insert several rows with one statement."""
        marks = ", ".join(f"({', '.join(['%s'] * len(columns))})" for _ in rows)
        values = [value for row in rows for value in row]
        self.sql(f"INSERT INTO penstock.enqueue ({', '.join(columns)}) VALUES {marks}", *values)

    def refusal(self, **columns: object) -> str:
        """Try to insert one row and return what the database says."""
        try:
            self.insert(**columns)
        except self.sql.refusal as error:
            return message(error)
        raise AssertionError(f"accepted: {columns}")

    def contexts(self, lane: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return what is stored of a lane's jobs, oldest first."""
        return self.sql(
            f"SELECT {', '.join(f'c.{column}' for column in columns)} FROM penstock.contexts c"
            " JOIN penstock.lanes l ON l.id = c.lane WHERE l.name = %s ORDER BY c.arrival",
            lane,
        )

    def ids(self, lane: str) -> list[str]:
        return [row[0] for row in self.contexts(lane, "id")]

    def deliver(self, lane: str) -> list[str | None]:
        """Claim and settle everything that may go; return the payloads in the order of sending."""
        payloads: list[str | None] = []
        ask = Ask(lane=lane, node=1, limit=10_000)
        while (claim := self.store.claim(ask) or self.store.claim_groups(ask)) is not None:
            contexts = [claimed.context for claimed in claim.jobs]
            payloads += [context.payload for context in contexts if context is not None]
            assert self.store.settle(claim).applied == {claimed.job.arrival for claimed in claim.jobs}
        return payloads


def open_door(place: Place) -> Door:
    """Make the tables and open the way in."""
    url = place.url if place.server is not None else f"sqlite:///{place.url}"
    store = connect(url)
    store.migrate()
    door = Door(place, store, place.plain())
    store.put_lane(lane_of(door.empty), actor="test")
    return door


def message(error: Exception) -> str:
    """Return the error's first line, without what the server says about where."""
    if isinstance(error, psycopg.Error):
        return error.diag.message_primary or ""
    return str(error)
