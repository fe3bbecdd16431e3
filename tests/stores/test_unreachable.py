"""A server that is not there is named as such, with what its address answered."""

import pytest

from penstock.errors import StoreUnavailable
from penstock.stores.postgres import database
from tests.servers import free_port


def test_who_waits_for_a_connection_hears_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 1.0)
    port = free_port()
    nobody = database.PostgresDatabase(f"postgresql://ann@127.0.0.1:{port}/jobs")
    try:
        with pytest.raises(StoreUnavailable, match=rf"port {port} failed: Connection refused"):
            nobody.read(lambda tx: tx.now)
    finally:
        nobody.close()
