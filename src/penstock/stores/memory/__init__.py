"""The store as a model: plain dictionaries under one lock, for tests, simulation and as the others' oracle.

It is meant to be obviously right, not fast: a claim looks at every live job. What an outcome or a verb does
to a row is `domain/settlement.py`, order is `domain/ordering.py`; here rows are only kept where they belong.

    tables.py       the rows, and the one way to put a row where its state belongs
    intake.py       enqueue and idempotency keys
    claiming.py     who goes next: fairness, groups, leases
    applying.py     outcomes: settle, resolve, report, expire
    operating.py    operators' verbs
    editing.py      edits and the versions they make
    lanes.py        lanes and pools: settings, pauses, deletion
    reading.py      find, timeline, group, counts
    flow.py         pacing: the last look before a send, scouting, limits, breakers, the store's pause
    wakeups.py      news for those who wait
    insight.py      why a job waits, which groups are stuck, who is at work
    listing.py      pages of jobs and of the audit log
    queue.py        the embedded broker
    secrets.py      keys that nodes share
    access.py       API keys, users, sessions
    retiring.py     what is old enough goes
    store.py        the port: lock, clock, delegation, nodes, terms
"""

from penstock.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
