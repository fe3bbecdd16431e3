"""People who look at a dashboard, in a process of their own.

`python -m bench.hammer URL PAGE...` has each of a few browsers ask for one page after the other until its
standard input ends, then prints one line of JSON: how long each took to its first byte, in ms.
"""

import http.client
import json
import sys
import threading
import time
from urllib.parse import urlsplit

BROWSERS = 4


def browse(url: str, pages: list[str], stop: threading.Event, took: list[float]) -> None:
    """Ask for the pages in turn, on one connection as browsers do."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    while True:
        for page in pages:
            if stop.is_set():
                return
            took.append(first_byte(connection, page))


def first_byte(connection: http.client.HTTPConnection, page: str) -> float:
    """Return the milliseconds from the request to the first byte of its answer."""
    started = time.perf_counter()
    connection.request("GET", page, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    took = (time.perf_counter() - started) * 1000
    body = answer.read()
    assert answer.status == 200, (page, answer.status, body[:300])
    return took


def main() -> None:
    url, *pages = sys.argv[1:]
    stop, took = threading.Event(), list[float]()
    browsers = [
        threading.Thread(target=browse, args=(url, pages[n:] + pages[:n], stop, took))
        for n in range(BROWSERS)
    ]
    for browser in browsers:
        browser.start()
    sys.stdin.read()
    stop.set()
    for browser in browsers:
        browser.join()
    print(json.dumps(took))


if __name__ == "__main__":
    main()
