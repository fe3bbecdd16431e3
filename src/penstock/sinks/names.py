"""Looking up names of targets, in threads of its own: a slow name server holds up nobody's file or store."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

# One thread per name that is being looked up; they are made when they are needed.
THREADS: Final = 32


class Names(AbstractResolver):
    """The system's resolver."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="penstock-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, protocol, address in found
        ]

    async def close(self) -> None:
        """Let the threads end; one that still waits for an answer is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[tuple[int, int, str]]:
    """Return family, protocol and address of each answer."""
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        raise OSError(f"{host} is no name that could be looked up: {error}") from error
    return [(kind, protocol, str(address[0])) for kind, _, protocol, _, address in found]
