"""Names are looked up by the system, beside the loop."""

import asyncio
import socket
import threading

import pytest

from penstock.sinks.names import Names


async def test_a_name_of_this_machine_has_its_addresses() -> None:
    names = Names()
    found = await names.resolve("localhost", 80)
    await names.close()

    assert {one["host"] for one in found} <= {"127.0.0.1", "::1"}
    assert {one["port"] for one in found} == {80}
    assert {one["hostname"] for one in found} == {"localhost"}


async def test_a_name_that_is_none_says_so() -> None:
    names = Names()
    with pytest.raises(socket.gaierror):
        await names.resolve("name with blanks", 80)
    await names.close()


async def test_slow_names_hold_up_neither_other_names_nor_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty look-ups hang; another one and a thread of the default pool are served at once."""
    answer = threading.Event()
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *rest: object, **more: object) -> object:
        if host.endswith(".slow.example"):
            answer.wait(60)
            raise socket.gaierror("at last")
        return real(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    names = Names()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(_failing(names, f"{number}.slow.example")) for number in range(20)]
        assert await names.resolve("localhost", 80)
        assert await asyncio.to_thread(lambda: 7) == 7
        assert not [task for task in slow if task.done()]
        answer.set()
    await names.close()

    assert all(task.result() for task in slow)


async def _failing(names: Names, host: str) -> bool:
    try:
        await names.resolve(host, 80)
    except socket.gaierror:
        return True
    return False


async def test_what_is_no_name_is_not_found() -> None:
    """Python raises what nobody takes for an answer of a name server."""
    names = Names()
    try:
        with pytest.raises(OSError, match=r"api\.\.example is no name"):
            await names.resolve("api..example", 80)
    finally:
        await names.close()
