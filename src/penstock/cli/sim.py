"""`penstock sim`: run seeds of the deterministic simulation, and see a failing one again."""

import json
import subprocess
import time
from pathlib import Path
from typing import Final

import click

from penstock import __version__
from penstock.testing.sim.families import FAMILIES, STORE_FAMILIES
from penstock.testing.sim.run import Result, command, run_seed

_EVERY: Final = "all"


@click.command()
@click.option("--seed", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds.")
@click.option(
    "--family",
    "families",
    type=click.Choice([_EVERY, *FAMILIES]),
    multiple=True,
    default=[_EVERY],
    show_default=True,
    help="The kind of scenario; may be given several times.",
)
@click.option(
    "--reference", is_flag=True, help="Run the small reference dispatcher, which strains the store alone."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per family.")
def sim(*, seed: int, seeds: int, families: tuple[str, ...], reference: bool, as_json: bool) -> None:
    """Run the engine on a simulated clock, network and sink and a real store, under faults drawn from a seed.

    The same seed gives the same run. Whatever breaks a promise ends the command with status 1, the end of the
    journal, and the command that shows it again.
    """
    known = STORE_FAMILIES if reference else FAMILIES
    chosen = list(known) if _EVERY in families else list(dict.fromkeys(families))
    if foreign := [family for family in chosen if family not in known]:
        raise click.UsageError(f"{', '.join(foreign)} is about the engine: leave out --reference")
    for family in chosen:
        started = time.perf_counter()
        results = [_run(family, number, engine=not reference) for number in range(seed, seed + seeds)]
        click.echo(_summary(family, results, time.perf_counter() - started, as_json=as_json))


def _run(family: str, seed: int, *, engine: bool) -> Result:
    try:
        return run_seed(family, seed, engine=engine)
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        click.echo("\n".join([*notes, f"{type(error).__name__}: {error}"]), err=True)
        raise click.ClickException(f"{command(family, seed, engine=engine)}  ({_code()})") from error


def _summary(family: str, results: list[Result], seconds: float, *, as_json: bool) -> str:
    figures = {
        "seeds": len(results),
        "jobs": sum(result.jobs for result in results),
        "deliveries": sum(result.deliveries for result in results),
        "zombies": sum(result.stale for result in results),
        "store_calls": sum(result.store_calls for result in results),
        "ms_per_seed": round(1000 * seconds / len(results), 1),
    }
    if as_json:
        return json.dumps({"family": family, **figures, "trace": results[-1].trace})
    return f"{family}: " + ", ".join(f"{figure} {name}" for name, figure in figures.items())


def _code() -> str:
    """Return which code ran: the commit where there is one, else the version."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(git, check=True, capture_output=True, text=True)  # noqa: S603 - our own words
    except (OSError, subprocess.CalledProcessError):
        return f"penstock {__version__}"
    return f"commit {done.stdout.strip()}"
