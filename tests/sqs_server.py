"""moto's SQS, put right where it is not like Amazon's, with a clock that tests can move (`Sqs.advance`).

What moto does otherwise, and what it does here:

- A group whose messages have come back into sight is held up by them, and the last of them comes first.
  Here it is free, and its first message comes first.
- It forgets a deduplication id when its message is deleted. Amazon remembers it for five minutes.
- Two who ask at the same time may be given the same message, and of two that are deleted at once one may
  stay; one that is shown again during a look sets free those behind it. Here one is served after the other.
- Its clock goes on while it looks through a queue: a message may come into sight just after it was passed
  over, and set free those behind it. Here a look takes no time.
- Whoever waits for messages keeps a processor busy. Here it looks again every few moments.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from moto.core import utils
from moto.server import main
from moto.sqs import models

LOOK_EVERY_S = 0.02
CLOCK = Path("clock")  # seconds that it is ahead, in the folder of the server
MOMENT: ContextVar[float | None] = ContextVar("MOMENT", default=None)  # of the look that is being taken

receive = models.SQSBackend.receive_message
add = models.Queue.add_message
delete = models.Queue.delete_message
change = models.SQSBackend.change_message_visibility


def now() -> float:
    moment = MOMENT.get()
    if moment is not None:
        return moment
    ahead = float(CLOCK.read_text(encoding="utf-8")) if CLOCK.exists() else 0.0
    return utils.unix_time() + ahead


@contextmanager
def one_moment() -> Iterator[None]:
    token = MOMENT.set(now())
    try:
        yield
    finally:
        MOMENT.reset(token)


def look(backend: models.SQSBackend, *asked: object) -> list[models.Message]:
    with one_moment():
        return receive(backend, *asked)


def groups_out(queue: models.Queue) -> set[str]:
    return {one.group_id for one in queue.pending_messages if one.group_id is not None and not one.visible}


def receive_message(  # noqa: PLR0917 - as it is called
    backend: models.SQSBackend,
    queue_name: str,
    count: int,
    wait: int,
    visibility: int,
    names: list[str] | None = None,
) -> list[models.Message]:
    queue, until = backend.get_queue(queue_name), time.monotonic() + (wait or 0)
    with queue._messages_lock:
        while not (found := look(backend, queue_name, count, 0, visibility, names)):
            if time.monotonic() >= until:
                break
            queue._messages_lock.wait(LOOK_EVERY_S)
        return found


def add_message(queue: models.Queue, message: models.Message) -> None:
    with queue._messages_lock:
        if queue.fifo_queue and message.deduplication_id:
            known = queue.__dict__.setdefault("deduplicated", {})
            if now() - known.get(message.deduplication_id, 0.0) < models.DEDUPLICATION_TIME_IN_SECONDS:
                return
            known[message.deduplication_id] = now()
        add(queue, message)


def delete_message(queue: models.Queue, receipt_handle: str) -> None:
    with queue._messages_lock:
        delete(queue, receipt_handle)


def change_message_visibility(
    backend: models.SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int
) -> None:
    with backend.get_queue(queue_name)._messages_lock:
        change(backend, queue_name, receipt_handle, visibility_timeout)


if __name__ == "__main__":
    models.unix_time = now
    models.unix_time_millis = lambda: 1000.0 * now()
    models.Queue.pending_message_groups = property(groups_out)
    models.SQSBackend.receive_message = receive_message
    models.SQSBackend.change_message_visibility = change_message_visibility
    models.Queue.add_message = add_message
    models.Queue.delete_message = delete_message
    main(sys.argv[1:])
