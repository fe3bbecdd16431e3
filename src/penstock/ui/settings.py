"""Settings as forms give them: text in, checked values out; and what changing one would do."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.config.keys import from_text
from penstock.config.sources import source_of
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS, Lane, Setting, check_setting
from penstock.domain.rates import parse_rate
from penstock.errors import InvalidSetting
from penstock.ui.words import span

LIMITS: Final = ("rate", "max_in_flight", "max_groups", "batch_size", "weight", "max_depth")


class Shown(NamedTuple):
    """One setting of a lane or pool; `by` is who changed it last, if that is on record."""

    name: str
    value: Any
    default: Any
    about: str
    kind: str
    words: tuple[str, ...]
    by: AuditEntry | None

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return bool(self.value == self.default)

    @property
    def source(self) -> str:
        """Where it comes from: `default`, the name of the file that was applied, `database` or `unknown`."""
        return source_of(self.value, self.default, self.by)


def shown(
    values: Mapping[str, Any], settings: Mapping[str, Setting], by: Mapping[str, AuditEntry]
) -> list[Shown]:
    """Return every setting with its value and who changed it last."""
    return [
        Shown(name, values[name], each.default, each.about, each.kind, tuple(each.words), by.get(name))
        for name, each in settings.items()
    ]


def given(
    fields: Mapping[str, str], settings: Mapping[str, Setting], *, missing: bool = False
) -> dict[str, object]:
    """Return the settings that a form has, checked; an empty field is the default. Raise InvalidSetting."""
    return {
        name: _checked(name, setting, fields.get(name, ""))
        for name, setting in settings.items()
        if name in fields or missing
    }


def _checked(name: str, setting: Setting, text: str) -> object:
    if not text:
        return setting.default
    if setting.kind == "retry" and not text.startswith(("[", "{")):
        return check_setting(name, setting, [part.strip() for part in text.split(",")])
    return check_setting(name, setting, from_text(setting.kind, text))


def effect(lane: Lane, rate: str, waiting: int) -> str:
    """Return what another rate would mean for what waits: `500/s to 1,000/s: empty in 4 min, not 8 min`."""
    if not waiting:
        return "Nothing waits: the next jobs go at this rate."
    after = _duration(rate, waiting)
    before = _duration(str(lane["rate"] or ""), waiting)
    if after is None:
        return f"{waiting:,} jobs wait: without a rate they go as fast as their target takes them."
    old = "" if before is None else f", not {span(before)} as at {lane['rate']}"
    return f"{waiting:,} jobs wait: at {rate} they are gone in {span(after)}{old}."


def _duration(rate: str, waiting: int) -> float | None:
    if not rate:
        return None
    try:
        parsed = parse_rate(rate)
    except (ValueError, TypeError) as error:
        raise InvalidSetting("rate", str(error)) from error
    return waiting / (parsed.count / parsed.per.total_seconds())


def lane_settings() -> Mapping[str, Setting]:
    """Return the settings of lanes, those that are changed most first."""
    first = {name: SETTINGS[name] for name in LIMITS}
    return first | {name: setting for name, setting in SETTINGS.items() if name not in first}
