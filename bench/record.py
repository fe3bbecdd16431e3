"""Measurements as they come: a line on the screen, a line of JSON in `results/`, a table in the end."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench import machine

RESULTS = Path(__file__).parent / "results"


@dataclass(slots=True)
class Spent:
    """Seconds and CPU seconds, of this process and of the server, over the times it was entered.

    The first few are left out: a connection has to be made, and a server to get to know it.
    """

    server_cpu: Callable[[], float]
    skip: int = 5
    times: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    server: float = 0.0

    def __enter__(self) -> None:
        if self.times == self.skip:
            self.wall, self.cpu, self.server = 0.0, 0.0, -self.server_cpu()
        self.times += 1
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def __exit__(self, *error: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()

    def end(self) -> None:
        """Read the server's clock once more."""
        self.server += self.server_cpu()


@dataclass
class Verdict:
    """One line of the table: a number and the least or most it may be."""

    what: str
    value: str
    target: str
    ok: bool | None


@dataclass
class Record:
    """Collects measurements and verdicts of one run of the benchmark."""

    patience: float
    started: float = field(default_factory=time.monotonic)
    values: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    restless: int = 0

    def __post_init__(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        self.path = RESULTS / time.strftime("%Y%m%d-%H%M%S.jsonl", time.gmtime())

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", file=sys.stderr, flush=True)

    def measured(self, *key: str, value: float, unit: str, **more: object) -> None:
        """Keep one measurement."""
        self.values.setdefault(key, []).append(value)
        line = {"what": key, "value": round(value, 3), "unit": unit, "load": machine.load(), **more}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.say(
            f"{' / '.join(key)}: {value:,.0f} {unit}"
            if value >= 100
            else f"{' / '.join(key)}: {value:.2f} {unit}"
        )

    def median(self, *key: str) -> float:
        return statistics.median(self.values[key])

    def spread(self, *key: str) -> str:
        values = self.values[key]
        return f"{min(values):,.0f}..{max(values):,.0f}"

    def rounds(self, count: int, runs: Iterable[tuple[str, Callable[[], None]]]) -> None:
        """Make every run `count` times, in turn, each on a quiet machine if there is patience left."""
        runs = list(runs)
        for turn in range(count):
            for name, run in runs:
                if not machine.wait_until_quiet(self.patience, self.say):
                    self.restless += 1
                self.say(f"{name}, round {turn + 1} of {count}")
                run()

    def rate(self, what: str, key: tuple[str, ...]) -> None:
        """Put a rate into the table, without a target."""
        self.note(what, f"{self.median(*key):,.0f}/s ({self.spread(*key)})")

    def note(self, what: str, value: str) -> None:
        """Put a line into the table, without a target."""
        self.verdicts.append(Verdict(what, value, "", ok=None))

    def share(self, what: str, key: tuple[str, ...], of: tuple[str, ...], least: float) -> None:
        """Put into the table what one kind of run reaches of another, which must not be less.

        Each run is held against the other one of its round: the machine changes more from minute to minute
        than within one. The share is the median over the rounds.
        """
        shares = [one / other for one, other in zip(self.values[key], self.values[of], strict=True)]
        value = statistics.median(shares)
        told = f"{value:.0%} ({min(shares):.0%}..{max(shares):.0%})"
        self.verdicts.append(Verdict(what, told, f"≥ {least:.0%}", ok=value >= least))

    def at_least(self, what: str, value: float, least: float) -> None:
        """Put a share into the table that must not be less; a least of nothing is no target."""
        target = f"≥ {least:.0%}" if least else ""
        self.verdicts.append(Verdict(what, f"{value:.0%}", target, ok=value >= least if least else None))

    def at_most(self, what: str, value: float, most: float) -> None:
        """Put a factor into the table that must not be more."""
        self.verdicts.append(Verdict(what, f"{value:.2f}x", f"≤ {most:.2f}x", ok=value <= most))

    def verdict(self, what: str, value: str, target: str, *, ok: bool | None) -> None:
        """Put a line into the table whose target is more than one number."""
        self.say(f"{what}: {value}")
        self.verdicts.append(Verdict(what, value, target, ok=ok))

    def table(self) -> str:
        """Return the report as Markdown."""
        head = [f"- {name}: {value}" for name, value in machine.describe().items()]
        head.append(
            f"- load at the end: {machine.load()}; runs begun while others used the machine: {self.restless}"
        )
        rows = ["| measurement | median (range) | target | |", "|---|---|---|---|"]
        marks = {True: "met", False: "**missed**", None: ""}
        rows += [f"| {v.what} | {v.value} | {v.target} | {marks[v.ok]} |" for v in self.verdicts]
        return "\n".join([*head, "", *rows, ""])
