"""Templates: everything is escaped, a name that is missing is an error, nothing is inline."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from penstock.domain.filter_line import quoted
from penstock.ui import pieces, words
from penstock.ui.assets import Assets

FILTERS: Final = (
    "number", "short", "span", "ms", "ago", "at", "stamp", "clock", "size", "pretty", "plural", "setting",
    "sentence", "octets",
)  # fmt: skip
PIECES: Final = ("state", "when", "ends", "exact", "job_link", "lane_link")
# What turns the direction of the text around it; and what a form sends back, which must come back as it was.
TURNS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TURN: Final = re.compile(f"[{TURNS}]")
_KEPT_OR_TURN: Final = re.compile(rf'<textarea.*?</textarea>|\bvalue="[^"]*"|[{TURNS}]', re.DOTALL)
STATES: Final = ("pending", "claimed", "dispatched", "running", "held", "waiting", "dead")


def environment(assets: Assets) -> Environment:
    """Return the templates with their filters."""
    env = Environment(
        loader=PackageLoader("penstock.ui", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for name in FILTERS:
        env.filters[name] = getattr(words, name)
    for name in PIECES:
        env.filters[name] = getattr(pieces, name)
    # Of a name that stands in a template these are asked once, when it is compiled.
    env.filters |= {"quoted": quoted, "asset": assets.url, "icon": icons_of(assets)}
    env.globals |= {"spark": spark, "depths": depths, "query": query}
    return env


def icons_of(assets: Assets) -> Callable[[str], Markup]:
    """Return the filter that draws an icon by its name."""
    url = assets.url("icons.svg")

    def icon(name: str) -> Markup:
        use = f'<use href="{url}#{escape(name)}"/>'
        return Markup(f'<svg class="icon" aria-hidden="true">{use}</svg>')  # noqa: S704 - escaped

    return icon


def spelled_out(page: str) -> str:
    """Return a page with what would rearrange its text spelled out, as the command line does."""
    if _TURN.search(page) is None:
        return page
    return _KEPT_OR_TURN.sub(lambda found: _spelled(found[0]), page)


def _spelled(part: str) -> str:
    return part if len(part) > 1 else f"\\u{ord(part):04x}"


def spark(values: Sequence[float], width: int = 120, height: int = 24) -> str:
    """Return the points of a line through the values, for an SVG of that size."""
    if not values:
        return ""
    top = max(values) or 1
    step = width / max(1, len(values) - 1)
    return " ".join(f"{i * step:.1f},{height - 1 - v / top * (height - 2):.1f}" for i, v in enumerate(values))


def depths(counts: Mapping[str, int], width: int = 120) -> list[tuple[str, float, float, int]]:
    """Return (state, x, width, count) for a bar of all live states; what exists is never too thin to see."""
    present = [(state, counts[state]) for state in STATES if counts.get(state)]
    total = sum(count for _, count in present)
    parts, at = [], 0.0
    room = width - 3 * len(present)
    for state, count in present:
        part = 3 + room * count / total
        parts.append((state, round(at, 1), round(part, 1), count))
        at += part
    return parts


def query(base: Mapping[str, Any], **changes: object) -> str:
    """Return a query string: what the page has, with some of it changed; None and empty are left out."""
    kept = [(name, value) for name, value in {**base, **changes}.items() if value not in (None, "", ())]
    if all(type(value) is str for _, value in kept):  # as in the links of every row
        return "?" + "&".join([f"{name}={quote_plus(value)}" for name, value in kept])
    return f"?{urlencode(kept, doseq=True)}"
