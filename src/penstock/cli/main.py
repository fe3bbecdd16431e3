"""The `penstock` command: a table of sub-commands, each imported only when it is called.

Importing every sub-command would import every driver and server library; `penstock --help` and shell
completion must stay instant, so the one-line summaries live in the table and not in the modules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click

from penstock import __version__
from penstock.cli import INTERRUPTED


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a sub-command lives, and what `--help` says about it."""

    target: str  # "module:attribute"
    summary: str


COMMANDS: Mapping[str, Entry] = {
    "access": Entry("penstock.cli.access:access", "Let programs in: make, list and revoke API keys."),
    "audit": Entry("penstock.cli.audit:audit", "Show who did what to jobs, lanes and pools, and why."),
    "bulk": Entry("penstock.cli.operations:bulk", "Cancel, skip, hold or retry all that a filter finds."),
    "check": Entry(
        "penstock.cli.check:check", "Check the configuration and the store, and show what is in force."
    ),
    "completion": Entry(
        "penstock.cli.completion:completion", "Print what a shell needs to complete commands."
    ),
    "dead": Entry("penstock.cli.dead:dead", "Look at dead letters by cause, replay or discard them."),
    "dev": Entry("penstock.cli.dev:dev", "Run everything in one process on a local SQLite file."),
    "doctor": Entry("penstock.cli.doctor:doctor", "Look for what is wrong right now, and say what to do."),
    "enqueue": Entry("penstock.cli.enqueue:enqueue", "Put a job into a lane, or a stream of them."),
    "groups": Entry("penstock.cli.groups:groups", "Look at ordered groups, and help those that are stuck."),
    "history": Entry("penstock.cli.history:history", "List jobs that ended, the last one first."),
    "init": Entry("penstock.cli.init:init", "Write a penstock.toml to begin with, or rules for Prometheus."),
    "jobs": Entry("penstock.cli.jobs:jobs", "List jobs, look at one, and act on it."),
    "keys": Entry(
        "penstock.cli.keys:keys", "Look at the keys that sign webhooks and tokens, and replace them."
    ),
    "lanes": Entry("penstock.cli.lanes:lanes", "Look at lanes, change, pause, and apply them from a file."),
    "listen": Entry("penstock.cli.listen:listen", "Receive what is sent to http targets, and show it."),
    "migrate": Entry("penstock.cli.migrate:migrate", "Create or upgrade the database schema."),
    "nodes": Entry("penstock.cli.nodes:nodes", "Look at running nodes, and drain one."),
    "openapi": Entry("penstock.cli.openapi:openapi", "Print the document of the API, for programs."),
    "operations": Entry(
        "penstock.cli.operations:operations", "Look at replays and other bulk operations, and stop them."
    ),
    "pause-all": Entry("penstock.cli.pause_all:pause_all", "Stop sending from every lane."),
    "pools": Entry("penstock.cli.pools:pools", "Look at pools (shared limits), change and pause them."),
    "replay": Entry("penstock.cli.operations:replay", "Send all dead letters that a filter finds again."),
    "resume-all": Entry("penstock.cli.pause_all:resume_all", "Let every lane go on."),
    "router": Entry("penstock.cli.router:router", "Bring queued messages to their processing endpoint."),
    "serve": Entry("penstock.cli.serve:serve", "Dispatch jobs: one node of as many as you like."),
    "sim": Entry("penstock.cli.sim:sim", "Run the engine in a deterministic simulation, from a seed."),
    "users": Entry("penstock.cli.users:users", "Let people in: add, change and remove users."),
    "targets": Entry("penstock.cli.targets:targets", "Look at targets that are left alone, and pause one."),
    "top": Entry("penstock.cli.top:top", "Watch lanes, rates, lag and trouble in the terminal."),
    "version": Entry("penstock.cli.version:version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group that knows its sub-commands by name and imports one when it is asked for."""

    def __init__(self, *, entries: Mapping[str, Entry], help: str) -> None:  # noqa: A002 - click's own word
        super().__init__(help=help, context_settings={"help_option_names": ["-h", "--help"]})
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the alphabet."""
        return sorted(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the sub-command, or None when there is none of that name."""
        entry = self._entries.get(cmd_name)
        return None if entry is None else _load(entry.target)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the sub-command; one that is misspelt is told from one that does not exist."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from penstock.domain.names import near  # noqa: PLC0415 - only for those who mistype

            close = near(args[0], self._entries)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(close)}?", ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command; Ctrl-C and a closed pipe end it with exit codes of their own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            pass
        except BrokenPipeError as error:
            from penstock.cli.errors import Unprinted  # noqa: PLC0415 - only when a reader has gone

            raise Unprinted(error) from error
        except click.Abort as error:  # what click makes of Ctrl-C at a question; "no" is one as well
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
        click.echo("\ninterrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list for `--help` without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._entries[name].summary) for name in self.list_commands(ctx)])


def _load(target: str) -> click.Command:
    module, _, attribute = target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{target} is not a click command")
    return command


main = click.version_option(__version__, prog_name="penstock")(
    LazyGroup(entries=COMMANDS, help="Durable dispatch scheduler: on time, in order, no faster than allowed.")
)
