"""How log lines look, and what never gets into them.

Two formats on standard error: `console` for people and `json`, one object a line, for machines. Both pass
through the same redaction after everything else, so that no message, field or trace carries a secret.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Final, TextIO

DRIVERS: Final = ("aio_pika", "aiokafka", "aiormq", "psycopg.pool", "stomp.py")
FIELDS: Final = "fields"  # the attribute of a record that holds the facts beside its sentence
_SECRETS: Final = (
    # A password may have any character, so it ends at the last @ of the word; no port is one.
    (re.compile(r"(?<=://)([^/?#@:\[\s\"]*):(?!\d{1,5}[/?#])[^\s\"]*@"), r"\1:***@"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]+"), "whsec_***"),
    (re.compile(r"\bpk_[A-Za-z0-9_-]{8,}"), "pk_***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?"), "***"),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE), r"\1 ***"),
    (
        re.compile(
            r"""\b((?:[A-Za-z0-9]+[_-])?(?:password|passwd|secret|token|api[_-]?key|credential|authorization))"""
            r"""(\\?["']?\s*(?:=|(?<=["'])\s*:)\s*\\?["']?)(?!\*\*\*)[^\s"',;&}\\]+""",
            re.IGNORECASE,
        ),
        r"\1\2***",
    ),
)


def redacted(text: str) -> str:
    """Return the text without what looks like a password, a key or a token."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


class ConsoleFormatter(logging.Formatter):
    """`12:00:01.234 info  orders: 12 sent, 3 ms after due`, times in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and the trace if there is one."""
        at = datetime.fromtimestamp(record.created, UTC)
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {level}{_one_line(record.getMessage())}"
        trace = _trace(self, record)
        return redacted(f"{line}\n{trace}" if trace else line)


class JsonFormatter(logging.Formatter):
    """One object a line: at, level, logger, message, and the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object; a field never hides one of the four."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {
            "at": at.removesuffix("+00:00") + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts = getattr(record, FIELDS, {})
        trace = _trace(self, record)
        whole = {**facts, **said, **({"trace": trace} if trace else {})}
        return redacted(json.dumps(whole, ensure_ascii=True, default=str))


def configure(*, level: str, form: str, stream: TextIO) -> logging.Handler:
    """Send what this process logs to a stream: Penstock's from `level` on, of libraries only warnings."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else ConsoleFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("penstock").setLevel(level.upper())
    if level.lower() != "debug":
        hush_drivers()
    return handler


def hush_drivers() -> None:
    """Have drivers keep to themselves what we say better: which part or sink it was, and what to do."""
    for name in DRIVERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _one_line(text: str) -> str:
    """Spell out control characters: what a target answered must not forge lines or move the cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return str(getattr(record, FIELDS, {}).get("trace", "") or "")
