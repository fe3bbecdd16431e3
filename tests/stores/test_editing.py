"""Revisions go with the jobs they are of."""

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.domain.states import Effect
from penstock.stores.connect import connect
from penstock.stores.sql.editing import forget_revisions
from penstock.stores.sql.store import SqlStore
from tests.stores.places import Place

FOREVER = 1 << 62


def test_revisions_of_jobs_that_are_gone_are_forgotten(place: Place) -> None:
    store = connect(place.url if place.server else f"sqlite:///{place.url}")
    assert isinstance(store, SqlStore)
    store.migrate()
    store.put_lane(lane("a"), actor="test")
    store.enqueue([NewJob(lane="a", id=name, payload="old") for name in ("kept", "gone")])
    for name in ("kept", "gone"):
        assert store.edit(name, payload="new", actor="test", reason="test").effect is Effect.NOW
    store.db.write(lambda tx: tx.execute("DELETE FROM penstock.contexts WHERE id = :id", id="gone"))
    store.db.write(lambda tx: forget_revisions(tx, 0, FOREVER))

    left = store.db.read(lambda tx: tx.fetch("SELECT payload FROM penstock.revisions"))
    assert left == [("new",)]
    assert [version.payload for version in store.payload_versions("kept")] == ["old", "new"]
    assert store.payload_versions("gone") == []
    store.close()
