"""Numbers and times as people read them: the filters of the templates."""

import json
from datetime import UTC, datetime
from typing import Any, Final

NONE: Final = "–"  # noqa: RUF001 - a dash is what it is
# Words with which an explanation begins that leaves out whom it is about: the job.
OF_THE_JOB: Final = frozenset({"is", "was", "has", "had", "waits", "comes", "succeeded", "expired"})
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def number(value: float | None) -> str:
    """Return a number with separators; None is a dash."""
    if value is None:
        return NONE
    return f"{value:,.1f}" if not float(value).is_integer() else f"{int(value):,}"


def short(value: float | None) -> str:
    """Return a number in few characters: 1.2k, 3.4M."""
    if value is None:
        return NONE
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size or (unit == "M" and abs(value) >= size):
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return number(value)


def span(seconds: float | None) -> str:
    """Return a length of time: 12 ms, 3.4 s, 5 min, 2 h, 4 d."""
    if seconds is None:
        return NONE
    seconds = abs(seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s".replace(".0 ", " ")
    for unit, size in _UNITS:
        if seconds >= size * 1.5 or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    raise AssertionError


def ms(milliseconds: float | None) -> str:
    """Return a length of time given in milliseconds."""
    return span(None if milliseconds is None else milliseconds / 1000)


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago something was, or in how long it will be."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(seconds)} ago"


def at(text: str) -> datetime:
    """Return the time that a figure says."""
    return datetime.fromisoformat(text)


def stamp(at: datetime) -> str:
    """Return a time in full, for machines and for hovering over."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(at: datetime) -> str:
    """Return a time as a table shows it, in UTC; scripts show it in the reader's zone if asked to."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def size(text: str | None) -> str:
    """Return how large a text is."""
    length = len((text or "").encode(errors="replace"))
    return f"{length:,} B" if length < 10_240 else f"{length / 1024:,.0f} KiB"


def octets(count: int | None) -> str:
    """Return how much memory something has: 640 KiB, 92 MiB, 1.4 GiB."""
    if count is None:
        return NONE
    for unit, length in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= length:
            return f"{count / length:,.1f} {unit}" if unit == "GiB" else f"{count / length:,.0f} {unit}"
    return f"{count / 1024:,.0f} KiB"


class _Number(str):
    """A number as it was written: 1.0 stays 1.0, and 30 digits stay 30 digits."""

    __slots__ = ()


def pretty(text: str | None) -> str:
    """Return JSON with line breaks; what is no JSON stays as it is. For eyes only: never sent anywhere."""
    if text is None:
        return ""
    try:
        return written(as_written(text))
    except (ValueError, RecursionError):
        return text


def as_written(text: str) -> object:
    """Return what a JSON text says, with numbers as they were written; raise ValueError, RecursionError."""
    value: object = json.loads(text, parse_float=_Number, parse_int=_Number)
    return value


def written(value: object, newline: str = "\n") -> str:
    """Return a value of `as_written` as JSON with line breaks."""
    deeper = newline + "  "
    match value:
        case _Number():
            return str(value)
        case dict() if value:
            members = (f"{json.dumps(k, ensure_ascii=False)}: {written(v, deeper)}" for k, v in value.items())
            return "{" + deeper + ("," + deeper).join(members) + newline + "}"
        case list() if value:
            return "[" + deeper + ("," + deeper).join(written(v, deeper) for v in value) + newline + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def sentence(explained: str) -> str:
    """Return why something is as it is as a sentence: about the job, or about what is named."""
    first, end = explained.partition(" ")[0], "" if explained.endswith("?") else "."
    if first in OF_THE_JOB:
        return f"It {explained}{end}"
    return f"{explained[:1].upper() if first.isalpha() else explained[:1]}{explained[1:]}{end}"


def setting(value: Any) -> str:  # noqa: ANN401 - a setting is a text, a number, a flag or nothing
    """Return a setting as TOML would say it, without quotes."""
    if value is None:
        return NONE
    return str(value).lower() if isinstance(value, bool) else str(value)
