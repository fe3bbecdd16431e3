"""What `[sinks.NAME]` says, read by the kind it names; a mistake is an InvalidSetting."""

from datetime import timedelta

from penstock.domain.durations import parse_duration
from penstock.domain.names import unknown
from penstock.errors import InvalidSetting
from penstock.ports.sink import Options


def known_only(options: Options, *known: str) -> None:
    """Refuse an option that this kind does not have: it is misspelt, or would be missed."""
    for name in options:
        if name != "kind" and name not in known:
            sentence = unknown("option", name, known)
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InvalidSetting(name, sentence if "did you mean" in sentence else f"{sentence}; {has}")


def text(options: Options, name: str) -> str | None:
    """Return an option that is text; None = it is not given."""
    value = options.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidSetting(name, "write a text that is not empty")
    return value if isinstance(value, str) else None


def duration(options: Options, name: str, default: timedelta) -> timedelta:
    """Return an option that is a duration."""
    value = options.get(name)
    if value is None:
        return default
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidSetting(name, str(error)) from None
