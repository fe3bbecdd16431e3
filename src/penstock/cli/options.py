"""What commands that talk to a store have in common: where it is, who is asking, how answers are printed.

What is said on the command line wins over the environment, that over the profile of PENSTOCK_PROFILE, and
that over the configuration file; without any of these it is ./penstock.db.
"""

import getpass
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from penstock.brokers.files import FILE
from penstock.cli.errors import Misconfigured, reported
from penstock.client import Client
from penstock.config.profiles import VARIABLE as PROFILE
from penstock.config.profiles import find_profile, profile_names
from penstock.config.settings import API_KEY, load, twice, variable_of
from penstock.domain.arguments import check_reason
from penstock.domain.masking import without_password
from penstock.domain.sense import is_callable
from penstock.errors import InvalidConfig, InvalidJob, InvalidSetting, PenstockError
from penstock.stores.connect import DEFAULT_URL, is_api, package_of

EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - not bound to, only read
WAYS: Final = ("api", "url", "profile")  # the options that say where
Command = TypeVar("Command", bound=Callable[..., object])
Answer = TypeVar("Answer")


def _store_url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    said_by = context.get_parameter_source(str(option.name))
    if said_by is ParameterSource.ENVIRONMENT and (problems := twice(os.environ)):
        raise Misconfigured("\n".join(problems))
    try:
        if value is not None:
            package_of(value)
    except InvalidSetting as error:
        raise click.BadParameter(error.problem, param=option) from error
    return value


def api_url(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return the address of a node as it was given, or refuse what is none."""
    if value is not None and (problem := not_an_api(value)):
        raise click.BadParameter(problem, param=option)
    return value


def not_an_api(url: str) -> str | None:
    """Return what is wrong with the address of a node; None = nothing."""
    try:
        fine = is_api(url)
    except InvalidSetting:  # brackets that do not close
        fine = False
    if not fine:
        return "write http://HOST:7070 or https://HOST"
    if url.rstrip("/").endswith("/api"):
        return "write it without /api, which every command adds itself"
    return None


def _reason(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return why, or refuse what the API refuses: a terminal may send bytes that are no text."""
    try:
        return None if value is None else check_reason(value)
    except InvalidJob as error:
        raise click.BadParameter(error.problem, param=option) from error


store_option: Final = click.option(
    "--store",
    "url",
    metavar="URL",
    envvar="PENSTOCK_STORE",
    show_envvar=True,
    callback=_store_url,
    help="The database: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Default: the configuration file's,"
    f" else {DEFAULT_URL}.",
)
config_option: Final = click.option(
    "--config",
    "config",
    metavar="FILE",
    envvar="PENSTOCK_CONFIG",
    show_envvar=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The configuration file. Default: ./penstock.toml, if there is one.",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_WHY: Final[dict[str, Any]] = {
    "metavar": "TEXT",
    "callback": _reason,
    "help": "Why; kept in the audit with your name.",
}
reason_option: Final = click.option("--reason", required=True, **_WHY)
why_option: Final = click.option("--reason", default="resumed", **_WHY)
maybe_reason_option: Final = click.option("--reason", **_WHY)
until_option: Final = click.option(
    "--until", metavar="TIME", help="Goes on by itself then. Default: until resumed."
)
yes_option: Final = click.option("--yes", is_flag=True, help="Do not ask.")


def paged(command: Command) -> Command:
    """Give a list the options that all lists have."""
    for option in (
        click.option("--all", "everything", is_flag=True, help="No limit: page after page to the end."),
        click.option("--after", metavar="CURSOR", help="Go on where a page ended: its `next`."),
        click.option("--limit", metavar="N", type=click.IntRange(min=1), default=50, show_default=True),
        click.option("--lane", metavar="NAME", help="Only of this lane."),
    ):
        command = option(command)
    return command


def store_url(url: str | None, config: Path | None) -> str:
    """Return the store's URL; a configuration file is read only when it has to say."""
    if url is not None:
        return url
    value, source = load(config, os.environ).values["store"]
    try:
        package_of(str(value))
    except InvalidSetting as error:
        raise InvalidConfig([f"{source}: {error}"]) from error
    return str(value)


def actor() -> str:
    """Return who is asking, as the audit keeps it."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"


url_option: Final = click.option(
    "--url",
    "api",
    metavar="URL",
    envvar="PENSTOCK_URL",
    show_envvar=True,
    callback=api_url,
    help="A node's API instead of a database: https://HOST:7070; PENSTOCK_API_KEY is the key for it.",
)
profile_option: Final = click.option(
    "--profile",
    metavar="NAME",
    envvar=PROFILE,
    show_envvar=True,
    shell_complete=lambda _context, _option, begun: [
        name for name in profile_names(os.environ) if name.startswith(begun)
    ],
    help="A connection with a name, [profiles.NAME] of ~/.config/penstock/config.toml.",
)


class Way(NamedTuple):
    """Where a command works: a database or a node's API, with a key of its own or the environment's."""

    url: str
    key: str | None = None
    profile: str | None = None

    def __repr__(self) -> str:
        return "Way(***)"


def chosen_way(*, here: bool = False) -> Way:
    """Return where the command that runs is to work; `here`: on a database itself."""
    config = click.get_current_context().params["config"]
    return named_way(here=here) or Way(store_url(None, config))


def named_way(*, here: bool = False) -> Way | None:
    """Return where the command is to work as far as it was told so; None = the configuration file says.

    `here`: on a database itself. An API that the environment names does not count beside a store that it
    names; another one is refused.
    """
    context = click.get_current_context()
    said, told = (
        {name: context.params[name] for name in WAYS if context.get_parameter_source(name) is source}
        for source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    )
    if len(said) > 1 and ("profile" in said or not here):
        raise click.UsageError("--url, --store and --profile each say where to work: say one of them")
    in_file = os.environ.get(variable_of(f"store{FILE}"))
    if here and ("url" in told or in_file):
        told.pop("api", None)
    given = said or told
    if "api" in given or "url" in given:
        way = Way(given["api"] if "api" in given else given["url"])
    elif "profile" in given and (said or not in_file):
        way = _of_profile(given["profile"])
    else:
        return None
    if here and ("api" in given or is_api(way.url)):  # whatever --url names: a database is --store's
        raise not_here(context, way)
    return way


def _of_profile(name: str) -> Way:
    found = find_profile(name, os.environ)
    problem = _not_a_node(found.url) if found.url is not None else _not_a_store(found.store or "")
    if problem is not None:
        key = "store" if found.url is None else "url"
        raise InvalidConfig([f"{found.where}: profiles.{name}.{key}: {problem}"])
    return Way(found.url or found.store or "", found.key, name)


def _not_a_node(url: str) -> str | None:
    """Return also what opening it would find wrong, which then names neither file nor profile."""
    if problem := not_an_api(url):
        return problem
    parts = urlsplit(url)
    whole = is_callable(url) and not (parts.query or parts.fragment)
    return None if whole else "write http://HOST:7070 or https://HOST, without a query"


def _not_a_store(url: str) -> str | None:
    try:
        package_of(url)
    except InvalidSetting as error:
        return str(error)
    return None


def not_here(context: click.Context, way: Way) -> Misconfigured:
    """Return the error about a command that a node's API is no way to."""
    through = without_password(way.url) if way.profile is None else f"the profile {way.profile}"
    without = "--url and PENSTOCK_URL" if way.profile is None else "--profile and PENSTOCK_PROFILE"
    return Misconfigured(
        f"{context.command_path} works on the database itself, not through {through}: run it where the"
        f" database is, without {without}, or name the database with --store or PENSTOCK_STORE, or with the"
        " --profile of one"
    )


def with_client(command: Command) -> Command:
    """Give the command a Client as its first argument, and turn Penstock's errors into exit codes."""

    @store_option
    @url_option
    @profile_option
    @config_option
    @wraps(command)
    def run(*args: object, **kwargs: object) -> object:
        with reported(), opened(chosen_way()) as client:
            return command(client, *args, **_own(kwargs))

    return run  # type: ignore[return-value]


nowhere_else_option: Final = click.option(
    "--url",
    "api",
    metavar="URL",
    envvar="PENSTOCK_URL",
    show_envvar=True,
    help="Not with this command: run it where the database is.",
)


def with_database(command: Command) -> Command:
    """Give the command a Client of the database itself, which a node's API is no way to."""

    @store_option
    @nowhere_else_option
    @profile_option
    @config_option
    @wraps(command)
    def run(*args: object, **kwargs: object) -> object:
        with reported(), opened(chosen_way(here=True)) as client:
            return command(client, *args, **_own(kwargs))

    return run  # type: ignore[return-value]


def _own(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return what a command asked for itself."""
    return {name: value for name, value in arguments.items() if name not in {*WAYS, "config"}}


@contextmanager
def opened(way: Way) -> Iterator[Client]:
    """Open a store that must be there, with the tables of this version."""
    with Client(way.url, actor=actor(), api_key=way.key or os.environ.get(API_KEY)) as client:
        yield client


def page_of(job: str) -> str | None:
    """Return where the dashboard shows a job, if a node runs as it is configured here and knows the job.

    The pages are for nobody who is bound to a tenant: no address that he would be refused is named to him.
    """
    from penstock.cli.ask import NodeUnreachable, ask  # noqa: PLC0415 - only who waited pays for it

    way = chosen_way()
    base = way.url
    if not is_api(base):
        settings = load(click.get_current_context().params["config"], os.environ)
        host = str(settings["host"])
        base = f"http://{'127.0.0.1' if host in EVERYWHERE else host}:{settings['port']}"
    try:
        # Another node may be there, of another store: the port was a guess.
        ask(base, f"/api/jobs/{job}", key=way.key)
        ask(base, "/api/pause", key=way.key)  # refused to tenants, as the pages are
    except NodeUnreachable:
        return None
    return f"{base}/jobs/{job}"


def confirmed(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone; without a terminal `--yes` is the only answer."""
    if yes:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody is there to answer: say --yes.")
    click.confirm(question, abort=True, err=True)


def if_told(ask: Callable[[], Answer]) -> Answer | None:
    """Return what is worth a note at most; None where it is not told, to a key of a tenant for example.

    What somebody asked for is done all the same, and is not to look as if it were not.
    """
    try:
        return ask()
    except PenstockError:
        return None


def note(text: str, **style: Any) -> None:  # noqa: ANN401 - click's own
    """Talk to the person, not to the next program in the pipe."""
    click.secho(text, err=True, color=None if "NO_COLOR" not in os.environ else False, **style)
