"""Questions to a running node, without a library that takes long to import."""

import json
import os
from collections.abc import Collection
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from penstock.config.settings import API_KEY
from penstock.domain.access import proof
from penstock.errors import PenstockError

PATIENCE_S: Final = 6.0  # longer than a store that is away keeps a node from answering


UNAVAILABLE: Final = 503


class NodeUnreachable(PenstockError):
    """No node answers there, or what answers is none."""

    retryable = True

    def __init__(
        self, url: str, problem: str, fix: str = "start one with penstock serve or penstock dev"
    ) -> None:
        super().__init__(f"no node answers at {url} ({problem}): {fix}")


class StoreAway(NodeUnreachable):
    """The node is there, and its store is not."""

    def __init__(self, url: str, problem: str) -> None:
        super(NodeUnreachable, self).__init__(
            f"the node at {url} answers, but it cannot reach its store: {problem}. It goes on by itself when"
            " the store is back"
        )


class NotLetIn(NodeUnreachable):
    """The node is there, and answers to others."""

    def __init__(self, url: str, problem: str) -> None:
        fix = (
            f"set {API_KEY}, or the key of your profile, to one that may:"
            " penstock access create NAME --role viewer"
        )
        super(NodeUnreachable, self).__init__(f"the node at {url} refuses: {problem}; {fix}")


def ask(url: str, path: str, *, key: str | None = None, statuses: Collection[int] = (200,)) -> dict[str, Any]:
    """Return the JSON object at an address of the node, or raise NodeUnreachable.

    Without a key it is asked with the one of the environment.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise NodeUnreachable(url, "that is no address", "write http://127.0.0.1:7070")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=PATIENCE_S)
        try:
            below = parts.path.rstrip("/") + path  # a proxy may have the node under a path
            headers = {"Accept": "application/json", **proof(key or os.environ.get(API_KEY))}
            connection.request("GET", below, headers=headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
        finally:
            connection.close()
    except (json.JSONDecodeError, RecursionError) as error:
        raise NodeUnreachable(url, "what answers there is no Penstock node") from error
    except (OSError, HTTPException, ValueError) as error:
        raise NodeUnreachable(url, str(error) or type(error).__name__) from error
    if answer.status == UNAVAILABLE and UNAVAILABLE not in statuses and isinstance(found, dict):
        raise StoreAway(url, str(found.get("detail") or "it is not ready"))
    if answer.status in {401, 403} and isinstance(found, dict):
        raise NotLetIn(url, str(found.get("detail") or f"it answered {answer.status}"))
    if answer.status not in statuses or not isinstance(found, dict):
        raise NodeUnreachable(url, f"it answered {answer.status}", "if it is a node, its log says why")
    return found
