"""A lane's settings: the names, the defaults, and what is refused.

Durations are kept as users write them (`5s`, `15m`): in TOML, in the API and in the database, where a plain
`UPDATE penstock.lanes SET jitter = '4s'` must work. `SETTINGS` is the one list: tables, checks, docs follow.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from penstock.domain.durations import parse_duration, parse_size
from penstock.domain.names import check_lane_name
from penstock.domain.ordering import Mode
from penstock.domain.payloads import SURROGATE
from penstock.domain.rates import parse_rate
from penstock.domain.retry import RetrySchedule
from penstock.domain.sense import check_sense
from penstock.errors import InvalidSetting, VersionChanged

RETENTION_DAYS: Final[Mapping[str, int]] = MappingProxyType(
    {"1d": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365}
)
MAX_INT: Final = 2_147_483_647  # what every database's plain integer column holds
_MISFIRE: Final = re.compile(r"send_now|skip_after\((.+)\)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its kind, its default, for words the ones that are allowed, and what it does."""

    kind: str
    default: str | int | bool | None = None
    words: tuple[str, ...] = ()
    least: int = 0
    most: int = MAX_INT
    about: str = ""


MAX_PAYLOAD: Final = 1 << 30
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "enabled": Setting(
            "bool",
            default=True,
            about=(
                "The kill switch: `false` stops the lane and gives back what is claimed and not sent. "
                "Jobs stay."
            ),
        ),
        "mode": Setting(
            "word",
            "immediate",
            tuple(m.label for m in Mode),
            about="How jobs that do not say keep order in their group.",
        ),
        "sink": Setting("text", "console", about="Where jobs go: a named connection, or a kind."),
        "queue": Setting("text", about="Queue URL, topic, stream or exchange, for sinks that have several."),
        "target": Setting(
            "text",
            about=(
                "The URL that is finally called, for jobs that do not bring one: http:// or https://, "
                "if the sink is `http`."
            ),
        ),
        "format": Setting(
            "word",
            None,
            ("pointer", "full", "app", "payload"),
            about="What is sent of a job. Unset: what the sink's kind usually sends.",
        ),
        "complete_on": Setting(
            "word",
            None,
            ("sent", "reported"),
            about=(
                "When a job is done: once the sink took it, or when its executor reports. Unset: by "
                "the sink's kind."
            ),
        ),
        "pool": Setting("text", about="The pool whose limits its jobs share, unless they name another."),
        "batch_size": Setting("int", 500, least=1, about="How many jobs one claim takes at most."),
        "poll_interval": Setting(
            "duration",
            "1s",
            about=(
                "How long new jobs may go unnoticed when nobody calls: 20ms to 1m. A node looks at "
                "all its lanes at once, as often as the quickest of them asks for."
            ),
        ),
        "lookahead": Setting(
            "duration",
            "5s",
            about=(
                "How long before they are due jobs are claimed, to go on time; of a lane or pool with "
                "a rate no more than that lets go meanwhile."
            ),
        ),
        "jitter": Setting("duration", "0s", about="Each job goes up to this much later, by chance."),
        "misfire": Setting(
            "misfire",
            "send_now",
            about="What becomes of jobs that are late at their first attempt: they go, or expire.",
        ),
        "rate": Setting("rate", about="How many calls may be made to the sink, over all nodes."),
        "max_in_flight": Setting(
            "int",
            200,
            least=1,
            about="How many jobs may be being sent, or sent and not reported on, over all nodes.",
        ),
        "max_groups": Setting(
            "int",
            None,
            least=1,
            about="How many ordered groups may have a job in flight, over all nodes.",
        ),
        "retry": Setting(
            "retry",
            '["0s","1m","5m","15m","1h"]',
            about="The delay before each attempt, 0s before the first; as many attempts as entries.",
        ),
        "retry_on": Setting(
            "text",
            about="Failures that are tried again though the sink or executor calls them final.",
        ),
        "give_up_on": Setting("text", about="Failures that are final though they would be tried again."),
        "workflow": Setting("text", about="The workflow that the temporal sink starts."),
        "task_queue": Setting("text", about="The task queue it is started on."),
        "timeout": Setting("duration", "15s", about="How long one call to the sink may take: 1ms or more."),
        "lease": Setting(
            "duration",
            "30s",
            about=(
                "How long a claim lasts unless its node renews it, which it does three times as often: "
                "1s or more."
            ),
        ),
        "ack_timeout": Setting(
            "duration",
            "15m",
            about="How long a job that was sent may go without a start or an outcome being reported.",
        ),
        "run_timeout": Setting(
            "duration",
            "1h",
            about="How long a job whose start was reported may go without an outcome or a heartbeat.",
        ),
        "heartbeat": Setting(
            "duration",
            "30s",
            about=(
                "How often an executor that sends heartbeats does so; three that are missed count as silence."
            ),
        ),
        "on_unknown": Setting(
            "word",
            "requeue",
            ("requeue", "hold"),
            about="What becomes of a job when nobody knows whether it ran: it goes again, or is held.",
        ),
        "max_recoveries": Setting(
            "int",
            5,
            about="How often a job may be given up by silent executors; once more and it is dead.",
        ),
        "max_recoveries_per_pass": Setting(
            "int",
            100,
            least=1,
            about="About how many silent jobs of the lane one pass of recovery asks the sink.",
        ),
        "hold_until": Setting(
            "word",
            "done",
            ("done", "sent"),
            about=(
                "When the next job of a group may go: once the one before is done, or (sinks that "
                "keep order) sent."
            ),
        ),
        "max_depth": Setting(
            "int",
            None,
            least=1,
            about="How many jobs may be live before clients are refused. A soft limit.",
        ),
        "max_payload": Setting("size", "256KiB", about="How large a payload may be."),
        "key_ttl": Setting(
            "duration",
            "24h",
            about="How long an idempotency key is kept once its job is finished.",
        ),
        "retention": Setting(
            "word",
            "7d",
            tuple(RETENTION_DAYS),
            about="How long finished jobs are kept, of those enqueued from now on.",
        ),
        "dead_retention": Setting(
            "duration",
            "30d",
            about="How long dead jobs are kept; while one blocks its group, longer.",
        ),
        "keep_payload": Setting(
            "bool",
            default=True,
            about="`false`: payload and headers of a job are gone once it succeeded.",
        ),
        "weight": Setting(
            "int",
            1,
            least=1,
            about="Its share of a pool that several lanes want, beside the weights of the others.",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane as stored; `settings` holds every name of SETTINGS.

    A pause is no setting: whoever puts the settings of a paused lane leaves it paused.
    """

    name: str
    settings: Mapping[str, Any]
    id: int = 0
    version: int = 0
    paused: bool = False
    paused_until: datetime | None = None
    pause_reason: str | None = None
    paused_by: str | None = None

    def __getitem__(self, setting: str) -> Any:  # noqa: ANN401
        return self.settings[setting]

    @property
    def mode(self) -> Mode:
        """The mode of jobs that do not say."""
        return Mode[self.settings["mode"].upper()]

    @property
    def keep(self) -> int:
        """The retention class of jobs enqueued now, in days."""
        return RETENTION_DAYS[self.settings["retention"]]

    @property
    def skip_after(self) -> timedelta | None:
        """How much later than it was due a first send may be; None = however late."""
        misfire: str = self.settings["misfire"]
        return None if misfire == "send_now" else parse_duration(misfire.removeprefix("skip_after(")[:-1])

    def stopped(self, now: datetime) -> bool:
        """Say whether the lane is paused at this time: a pause ends by itself when its time has come."""
        return self.paused and (self.paused_until is None or now < self.paused_until)


def check_version(kind: str, name: str, version: int, expect: int | None) -> None:
    """Raise VersionChanged unless it is at the version that somebody expects."""
    if expect is not None and version != expect:
        raise VersionChanged(kind, name, version)


def lane(name: str, /, **settings: object) -> Lane:
    """Return a lane with defaults for what is not given, or raise InvalidSetting."""
    try:
        check_lane_name(name)
    except ValueError as error:
        raise InvalidSetting("name", str(error)) from error
    for given in settings:
        if given not in SETTINGS:
            raise InvalidSetting(given, "there is no such lane setting")
    made = Lane(name, {key: check(key, settings.get(key, s.default)) for key, s in SETTINGS.items()})
    check_sense(made.settings)
    return made


def check(name: str, value: object) -> str | int | bool | None:
    """Return the setting's value as stored, or raise InvalidSetting."""
    return check_setting(name, SETTINGS[name], value)


def check_setting(name: str, setting: Setting, value: object) -> str | int | bool | None:
    """Return a setting's value as stored, or raise InvalidSetting."""
    if value is None:
        if setting.default is not None:
            raise InvalidSetting(name, "must have a value")
        return None
    try:
        return _CHECKS[setting.kind](setting, value)
    except (ValueError, TypeError) as error:
        raise InvalidSetting(name, str(error)) from error
    except RecursionError:  # it could be read, and is too deep to be shown in the words that refuse it
        raise InvalidSetting(
            name, "is nested too deeply: docs/reference/configuration.md shows what to write"
        ) from None


def _bool(_: Setting, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("write true or false")
    return value


def _int(setting: Setting, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("write a whole number")
    if value < setting.least:
        raise ValueError(f"must be at least {setting.least}")
    if value > setting.most:
        raise ValueError(f"must be at most {setting.most}")
    return value


def _text(_: Setting, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("write a text that is not empty")
    if "\0" in value:
        raise ValueError("remove the NUL character, no database stores it in text")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(SURROGATE)
    return value


def _word(setting: Setting, value: object) -> str:
    if value not in setting.words:
        raise ValueError(f"{value!r} is none of {', '.join(setting.words)}")
    return str(value)


def _duration(_: Setting, value: object) -> str:
    parse_duration(value)
    return str(value)


def _size(_: Setting, value: object) -> str:
    if parse_size(value) > MAX_PAYLOAD:
        raise ValueError(f"{value} is more than a database keeps in one row: write at most 1GiB")
    return str(value)


def _rate(_: Setting, value: object) -> str:
    parse_rate(value)
    return str(value)


def _misfire(_: Setting, value: object) -> str:
    match = _MISFIRE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is neither send_now nor skip_after(10m)")
    if match[1]:
        parse_duration(match[1])
    return str(value)


def _retry(_: Setting, value: object) -> str:
    schedule = RetrySchedule.from_text(value) if isinstance(value, str) else RetrySchedule.parse(value)
    return schedule.to_text()


_CHECKS: Final[Mapping[str, Callable[[Setting, object], str | int | bool]]] = {
    "bool": _bool,
    "int": _int,
    "text": _text,
    "word": _word,
    "duration": _duration,
    "size": _size,
    "rate": _rate,
    "misfire": _misfire,
    "retry": _retry,
}


def oversize(payload: str, lane: Lane) -> str | None:
    """Say why a lane does not take a payload of this size, None = it does."""
    size = len(payload.encode())
    if size <= parse_size(lane["max_payload"]):
        return None
    return (
        f"has {size} bytes, more than the lane's max_payload of {lane['max_payload']}:"
        " send less, or a reference to where the rest is"
    )
