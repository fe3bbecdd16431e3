"""`make bench`: measure the store against bare SQL on this machine; `--full` takes hours, not minutes."""

import argparse
import sys

from bench import machine, suites
from bench.dispatch import dispatch
from bench.pages import pages
from bench.places import place
from bench.record import RESULTS, Record
from bench.scaling import scaling
from bench.suites import FULL, QUICK
from bench.webhook import webhook
from tests.servers import ServerUnavailableError

SUITES = ("enqueue", "client", "drain", "scaling", "dispatch", "webhook", "pages")
STORES = ("sqlite", "18", "15")


def main() -> int:
    """Run the suites; return 1 when a target is missed."""
    options = parsed()
    record = Record(patience=options.patience)
    record.say(", ".join(machine.describe().values()) + f", load {machine.load()}")
    for name in options.stores:
        try:
            with place(name, record.say) as where:
                measure(record, where, options)
        except ServerUnavailableError as error:
            record.say(f"left out: {error}")
    table = record.table()
    print(table)
    record.path.with_suffix(".md").write_text(table, encoding="utf-8")
    record.say(f"measurements are in {record.path.relative_to(RESULTS.parent.parent)}")
    return 1 if any(verdict.ok is False for verdict in record.verdicts) else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="more of everything, five rounds, long histories")
    parser.add_argument(
        "--stores", nargs="+", default=STORES, choices=STORES, help="sqlite, or a PostgreSQL version"
    )
    parser.add_argument("--suites", nargs="+", default=SUITES, choices=SUITES, help="what to measure")
    parser.add_argument("--rounds", type=int, help="how often each run is repeated")
    parser.add_argument(
        "--patience", type=float, default=10.0, help="seconds to wait for a quiet machine, each run"
    )
    return parser.parse_args()


def measure(record: Record, where: suites.Place, options: argparse.Namespace) -> None:
    """Run the suites asked for on one store."""
    scale = FULL if options.full else QUICK
    rounds = options.rounds or scale.rounds
    scale = suites.with_rounds(scale, rounds)
    if "enqueue" in options.suites:
        suites.enqueue(record, where, scale)
    if "client" in options.suites:
        suites.client(record, where, scale)
    if "drain" in options.suites:
        suites.claim_and_settle(record, where, scale)
    # One PostgreSQL is enough for a quick look: plans are guarded on both by tests/plans.
    if "scaling" in options.suites and (options.full or where.name != "PostgreSQL 15"):
        history = {"SQLite": 2_000_000}.get(where.name, 10_000_000) if options.full else 1_000_000
        scaling(record, where, history=history, rounds=rounds)
    if "dispatch" in options.suites and (options.full or where.name != "PostgreSQL 15"):
        dispatch(record, where, full=options.full)
    if "webhook" in options.suites and (options.full or where.name != "PostgreSQL 15"):
        webhook(record, where, full=options.full)
    if "pages" in options.suites and (options.full or where.name != "PostgreSQL 15"):
        pages(record, where, full=options.full)


if __name__ == "__main__":
    sys.exit(main())
