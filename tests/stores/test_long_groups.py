"""A replay of very many jobs of one group: in order, and none is refused because of those behind it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState, Verb
from penstock.stores.connect import connect

JOBS = 10_300


def test_a_replay_of_one_long_group_refuses_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    with closing(connect(f"sqlite:///{path}")) as store:
        store.migrate()
        store.put_lane(lane("orders", mode="next_on_error"), actor="test")
        client = Client(store, actor="test", notify=False)
        made = [one.id for one in client.enqueue_many({"lane": "orders", "group": "g"} for _ in range(JOBS))]  # type: ignore[union-attr]
        for verb in (Verb.HOLD, Verb.SETTLE_DEAD):
            store.operate(verb, made, actor="test", reason="test")
        with closing(sqlite3.connect(path)) as raw:  # as if each had been sent before it died
            raw.execute("UPDATE penstock_dead SET ord = ord - 2147483648")
            raw.commit()

        operation = client.start("retry", "lane:orders", reason="fixed")
        while operation.state in {"collecting", "working"}:
            step = store.collect_operation if operation.state == "collecting" else store.work_operation
            operation = step(operation.id)
            if operation.done == 200:  # those behind are dead still, and do not stand in the way
                assert {job.state for job in store.find(made[:200]).values()} == {JobState.PENDING}
                assert store.find(made[200:201])[made[200]].state is JobState.DEAD

    assert (operation.state, operation.done, operation.refused) == ("done", JOBS, 0), operation.refusals
