"""Exports, to the end of the list."""

from penstock.domain.job import AuditPage
from penstock.ui.exporting import pages_from


async def test_an_export_ends_where_its_list_ends() -> None:
    """Not at a number of rows, which nobody would see in the file."""

    async def following(after: str) -> AuditPage:
        return AuditPage([], str(int(after) + 1) if int(after) < 100_000 else None)

    found = [page.next async for page in pages_from(AuditPage([], "1"), following)]
    assert (len(found), found[-1]) == (100_001, None)


async def test_what_fits_on_one_page_is_asked_for_once() -> None:
    async def following(after: str) -> AuditPage:
        raise AssertionError(after)

    only = AuditPage([], None)
    assert [page async for page in pages_from(only, following)] == [only]
