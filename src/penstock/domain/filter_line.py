"""The filter language: `lane:pay state:pending,held run<1h payload.amount>100 error:timeout`.

One line of terms, all of which must hold. A term is a name, a comparison and a value; several values with
commas between them mean any of them; a value with blanks, commas or quotes is written in double quotes. The
line is read once: what lists have an index for becomes their filters, the rest becomes predicates.

A duration is a distance from now. `run` looks ahead: `run<1h` is due within the hour, `run<-5m` five minutes
overdue. `created` and `finished` look back: `finished<1d` ended less than a day ago.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple, TypedDict

from penstock.domain.durations import BadDuration, parse_distance
from penstock.domain.filters import Span
from penstock.domain.names import near
from penstock.domain.predicates import PAYLOAD, Op, Predicate, Value, as_time
from penstock.domain.states import JobState
from penstock.domain.times import check_time, shifted
from penstock.domain.ulid import BadUlid
from penstock.domain.ulid import parse as parse_ulid
from penstock.errors import InvalidFilter

LONGEST: Final = 4_000
MOST_TERMS: Final = 40
MOST_VALUES: Final = 100
DEEPEST: Final = 16
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_BLANK: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r'[^\s:=!<>~",]+')
_OP: Final = re.compile(r"!=|<=|>=|[:=<>~]")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE: Final = re.compile(r'[^\s,"]+')
# However long: Python reads 4,300 digits, a payload has no number of more, and a line is shorter.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_EXACT: Final = ("group", "tenant", "key", "mode", "reason", "receipt", "pool", "entity", "version",
                 "correlation", "fingerprint")  # fmt: skip
_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({
    "attempt": (1 << 15) - 1, "send": (1 << 31) - 1, "recoveries": (1 << 15) - 1,
    "sequence": (1 << 31) - 1, "batch": (1 << 63) - 1, "node": (1 << 31) - 1,
})  # fmt: skip  # and the largest that a store keeps
_CONTAINED: Final = ("error", "target")
TIMES: Final = ("run", "created", "finished")
NAMES: Final = ("lane", "state", "id", *TIMES, *_EXACT, *_NUMBERS, *_CONTAINED, f"{PAYLOAD}.NAME")
_ALIASES: Final = {
    "run_at": "run", "created_at": "created", "finished_at": "finished", "attempts": "attempt",
    "last_error": "error", "states": "state",
}  # fmt: skip
_INDEXED: Final = ("lane", "group", "tenant", "key")
_OTHERS: Final = re.compile(r"(?:and|or|not|&&?|[|]{1,2})|[(!+-].*", re.IGNORECASE)  # of other languages
_ALL_HOLD: Final = "all terms must hold: write lane:a,b for either, lane!=a for not, and no parentheses"
_STATES: Final = {state.label: state for state in JobState}
_US: Final = timedelta(microseconds=1)


class Read(TypedDict, total=False):
    """A line as lists understand it: a part of `queries.Filters`."""

    lane: str
    state: frozenset[JobState]
    group: str
    tenant: str
    key: str
    ids: tuple[str, ...]
    created: Span
    run: Span
    finished: Span
    where: tuple[Predicate, ...]


class Term(NamedTuple):
    """One term as it was written; `at` is the place of its first character, from 1."""

    at: int
    name: str
    op: Op
    texts: list[str]
    quoted: bool


@dataclass(slots=True)
class _Reading:
    """What the terms so far say."""

    now: Callable[[], datetime]
    found: Read = field(default_factory=Read)
    spans: dict[str, Span] = field(default_factory=dict)
    where: list[Predicate] = field(default_factory=list)


def read_filter(text: str, *, now: Callable[[], datetime]) -> Read:
    """Return what a line asks for, or raise InvalidFilter with the place and the fix.

    `now` is asked only if the line speaks of it.
    """
    reading = _Reading(now)
    for term in _terms(text):
        _take(reading, term)
    for name, span in reading.spans.items():
        reading.found[name] = span  # type: ignore[literal-required]
    if reading.where:
        reading.found["where"] = tuple(reading.where)
    return reading.found


def quoted(value: str) -> str:
    """Return a value as a line has it, whatever is in it."""
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def without(text: str, *names: str) -> str:
    """Return the line without its terms of these names, whatever they say; raise InvalidFilter."""
    terms = _terms(text)
    ends = [*(term.at - 1 for term in terms[1:]), len(text)]
    kept = (
        text[term.at - 1 : end].strip()
        for term, end in zip(terms, ends, strict=False)  # an empty line has an end, and no term
        if _ALIASES.get(term.name.lower(), term.name.lower()) not in names
    )
    return " ".join(kept)


# -- the line
def _terms(text: str) -> list[Term]:
    if len(text) > LONGEST:
        raise InvalidFilter(LONGEST, "the line is too long", f"use at most {LONGEST} characters")
    bad = _NO_TEXT.search(text)
    if bad is not None:
        raise InvalidFilter(bad.start() + 1, "there is a character that no text has", "remove it")
    terms, at = list[Term](), _skip(text, 0)
    while at < len(text):
        if len(terms) == MOST_TERMS:
            raise InvalidFilter(at + 1, "there are too many terms", f"use at most {MOST_TERMS}")
        term, at = _term(text, at)
        terms.append(term)
        if at < len(text) and not text[at].isspace():
            raise InvalidFilter(at + 1, "two terms stand together", "put a blank between them")
        at = _skip(text, at)
    return terms


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _term(text: str, at: int) -> tuple[Term, int]:
    name = _NAME.match(text, at)
    if name is None:
        raise InvalidFilter(
            at + 1, f"a term cannot begin with {text[at]}", "write name:value, like lane:orders"
        )
    op = _OP.match(text, name.end())
    if op is None:
        raise InvalidFilter(at + 1, f"{name[0]!r} is no term", _meant(name[0]))
    texts, quoted, end = _values(text, op.end())
    if not texts:
        raise InvalidFilter(op.end() + 1, f"there is no value after {name[0]}{op[0]}", 'write one, or ""')
    return Term(at + 1, name[0], Op(op[0].replace("=", ":") if op[0] == "=" else op[0]), texts, quoted), end


def _values(text: str, at: int) -> tuple[list[str], bool, int]:
    values, any_quoted = list[str](), False
    while True:
        quoted, bare = _QUOTED.match(text, at), _BARE.match(text, at)
        if quoted is not None:
            values.append(re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL))
            any_quoted, at = True, quoted.end()
        elif bare is not None:
            values.append(bare[0])
            at = bare.end()
        elif text.startswith('"', at):
            raise InvalidFilter(at + 1, "this quote is not closed", 'end the value with "')
        elif values:
            raise InvalidFilter(
                at + 1, "there is no value after the comma", "write one, or take the comma away"
            )
        if len(values) > MOST_VALUES:
            raise InvalidFilter(at + 1, "there are too many values", f"use at most {MOST_VALUES}")
        if not text.startswith(",", at):
            return values, any_quoted, at
        at += 1


def _meant(word: str) -> str:
    if _OTHERS.fullmatch(word):
        return _ALL_HOLD
    if word.lower() in _STATES:
        return f"did you mean state:{word.lower()}?"
    if _is_id(word):
        return f"did you mean id:{word}?"
    return f"write name:value, for example error:{word}"


def _is_id(word: str) -> bool:
    try:
        parse_ulid(word)
    except BadUlid:
        return False
    return True


# -- the terms
def _take(reading: _Reading, term: Term) -> None:
    name = _ALIASES.get(term.name.lower(), term.name.lower())
    if name == "state":
        _take_state(reading, term)
    elif name == "id":
        _take_ids(reading, term)
    elif name in TIMES:
        _take_time(reading, name, term)
    elif name in _NUMBERS:
        numbers = tuple(_whole(term, text, most=_NUMBERS[name]) for text in term.texts)
        reading.where.append(Predicate(name, _compared(term), numbers))
    elif name in ("lane", *_EXACT):
        _take_text(reading, name, term)
    elif name in _CONTAINED:
        op = Op.HAS if term.op is Op.IS else _one_of(term, Op.NOT, Op.HAS)
        reading.where.append(Predicate(name, op, tuple(term.texts)))
    elif name == PAYLOAD or name.startswith(f"{PAYLOAD}."):
        reading.where.append(_payload(term))
    else:
        close = near(name, (*NAMES, *_ALIASES))
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(NAMES)}"
        hint = _ALL_HOLD if _OTHERS.fullmatch(name) else hint
        raise InvalidFilter(term.at, f"there is no {term.name!r}", hint)


def _take_text(reading: _Reading, name: str, term: Term) -> None:
    found: Mapping[str, object] = reading.found
    if name not in _INDEXED or term.op is not Op.IS or len(term.texts) > 1:
        op = _one_of(term, Op.IS, Op.NOT, Op.HAS)
        reading.where.append(Predicate(name, op, tuple(term.texts)))
    elif name in found:
        either = f"{name}:{found[name]},{term.texts[0]}"
        raise InvalidFilter(term.at, f"{name} stands twice", f"write {either} for either")
    else:
        reading.found[name] = term.texts[0]  # type: ignore[literal-required]


def _take_state(reading: _Reading, term: Term) -> None:
    op = _one_of(term, Op.IS, Op.NOT)
    states = set()
    for text in term.texts:
        if text.lower() not in _STATES:
            close = near(text, _STATES)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(_STATES)}"
            raise InvalidFilter(term.at, f"there is no state {text!r}", hint)
        states.add(_STATES[text.lower()])
    wanted = frozenset(states) if op is Op.IS else frozenset(JobState) - states
    wanted &= reading.found.get("state", frozenset(JobState))
    if not wanted:
        raise InvalidFilter(term.at, "no state is left", "write state:dead,held for either")
    reading.found["state"] = wanted


def _take_ids(reading: _Reading, term: Term) -> None:
    _one_of(term, Op.IS)
    bad = next((text for text in term.texts if not _is_id(text)), None)
    if bad is not None:
        raise InvalidFilter(term.at, f"{bad!r} is no id of a job", "an id has 26 letters and digits")
    if "ids" in reading.found:
        raise InvalidFilter(term.at, "id stands twice", "write id:A,B for either")
    reading.found["ids"] = tuple(dict.fromkeys(parse_ulid(text) for text in term.texts))


def _take_time(reading: _Reading, name: str, term: Term) -> None:
    op = _one_of(term, Op.LT, Op.LE, Op.GT, Op.GE)
    [text] = _only(term)
    at, backwards = _moment(reading, name, term, text)
    upper = (op in (Op.LT, Op.LE)) != backwards
    span = reading.spans.get(name, Span())
    if upper:
        until = at + _US if op in (Op.LE, Op.GE) else at
        span = Span(span.since, until if span.until is None else min(until, span.until))
    else:
        since = at if op in (Op.LE, Op.GE) else at + _US
        span = Span(since if span.since is None else max(since, span.since), span.until)
    reading.spans[name] = span


def _moment(reading: _Reading, name: str, term: Term, text: str) -> tuple[datetime, bool]:
    """Return the time that a value means, and whether less of it means later."""
    fix = f"write a duration like {name}<1h, or a time like {name}<2026-11-15T10:00:00Z"
    at = as_time(text)
    if at is not None:
        return _kept(term, text, at), False
    sign, spelt = (-1, text[1:]) if text.startswith("-") else (1, text)
    try:
        distance = parse_distance(spelt) * sign
        backwards = name != "run"
        return shifted(reading.now(), -distance if backwards else distance), backwards
    except BadDuration:
        raise InvalidFilter(term.at, f"{text!r} is no time", fix) from None


def _kept(term: Term, text: str, at: datetime) -> datetime:
    try:
        return check_time(at)
    except ValueError as error:
        said, _, fix = str(error).partition(": ")
        raise InvalidFilter(term.at, f"{text!r} {said}", fix) from None


def _payload(term: Term) -> Predicate:
    path = tuple(term.name.split(".")[1:])
    if not all(path) or len(path) > DEEPEST:
        raise InvalidFilter(term.at, f"{term.name!r} names nothing in a payload", "write payload.amount>100")
    if not path:
        op = Op.HAS if term.op is Op.IS else _one_of(term, Op.HAS)
        return Predicate(PAYLOAD, op, tuple(term.texts))
    values = tuple(text if term.quoted or term.op is Op.HAS else _literal(text) for text in term.texts)
    return Predicate(PAYLOAD, _compared(term), values, path)


def _literal(text: str) -> Value:
    """Return a value as JSON would read it; what is no number, true, false or null is text."""
    words: Mapping[str, Value] = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    if _NUMBER.fullmatch(text) is None:
        return text
    return float(text) if any(sign in text for sign in ".eE") else int(text)


def _whole(term: Term, text: str, *, most: int) -> int:
    number = _literal(text)
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidFilter(term.at, f"{text!r} is no whole number", f"write {term.name}>3")
    if abs(number) > most:
        raise InvalidFilter(term.at, f"no job has {term.name} {text}", f"write a number up to {most}")
    return number


def _compared(term: Term) -> Op:
    if term.op in (Op.LT, Op.LE, Op.GT, Op.GE):
        _only(term)
    return term.op


def _only(term: Term) -> list[str]:
    if len(term.texts) > 1:
        raise InvalidFilter(term.at, f"{term.name}{term.op.value} takes one value", "take the others away")
    return term.texts


def _one_of(term: Term, *allowed: Op) -> Op:
    if term.op not in allowed:
        shown = " ".join(f"{term.name}{op.value}" for op in allowed)
        raise InvalidFilter(term.at, f"{term.name} cannot be compared by {term.op.value}", f"use {shown}")
    return term.op
