"""The public names: few, documented, and free until they are used."""

import subprocess
import sys

import pytest

import penstock

HEAVY = {"asyncio", "sqlite3", "psycopg", "psycopg_pool", "penstock.client", "penstock.errors"}


def test_there_are_at_most_fifteen_and_errors() -> None:
    named = {name: getattr(penstock, name) for name in penstock.__all__}
    errors = {name for name, it in named.items() if isinstance(it, type) and issubclass(it, Exception)}
    assert len(set(penstock.__all__) - errors) <= 15
    assert set(penstock.__all__) <= set(dir(penstock))


@pytest.mark.parametrize("name", penstock.__all__)
def test_each_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(penstock, name).__doc__


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'Cleint'"):
        penstock.Cleint  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys; import penstock; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)

    assert HEAVY & set(loaded.stdout.split()) == set()


def test_connect_opens_a_client(tmp_path: object) -> None:
    from penstock.stores.connect import connect  # noqa: PLC0415

    url = f"sqlite:///{tmp_path}/penstock.db"
    store = connect(url)
    store.migrate()
    store.close()
    with penstock.connect(url, actor="ann") as client:
        assert isinstance(client, penstock.Client)
        assert client.counts() == {}
