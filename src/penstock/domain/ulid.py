"""ULIDs: 26 characters that sort by time, made without asking anybody.

48 bits of milliseconds and 80 random bits in Crockford's base 32, upper case. Ids from one `Ulids` strictly
increase: within a millisecond, and while the clock stands behind the last id, the next id is the last one
plus one, which carries into the milliseconds should the random part ever be full. Ids are unique, not
secret.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from penstock.domain.names import shown

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENTROPY_BYTES: Final = 10
MAX_MS: Final = (1 << 48) - 1

_ULID: Final = re.compile(f"[0-7][{ALPHABET}]{{25}}")
_LETTER: Final = {letter: number for number, letter in enumerate(ALPHABET)}
_PAIR: Final = tuple(high + low for high in ALPHABET for low in ALPHABET)
_TAIL_BITS: Final = 20
_TAIL_END: Final = 1 << _TAIL_BITS
_HEAD_END: Final = 1 << (128 - _TAIL_BITS)


class BadUlid(ValueError):
    """No ULID can be made of this, or read from it; the message says why."""


class Ulids:
    """A source of strictly increasing ids that threads may share.

    `clock` returns milliseconds since 1970, `entropy(n)` returns n random bytes. A process that forks makes a
    new source in the child, or both would go on with the same run of ids.
    """

    __slots__ = ("_clock", "_entropy", "_turn")

    def __init__(self, clock: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        self._clock = clock
        self._entropy = entropy
        # The run is the baton: whoever takes it out is alone with it until it is put back.
        self._turn: SimpleQueue[_Run] = SimpleQueue()
        self._turn.put(_Run())

    def __call__(self) -> str:
        """Return the next id."""
        run = self._turn.get()
        try:
            ms = self._clock()
            if ms > run.ms:
                run.start(ms, self._entropy(ENTROPY_BYTES))
            return run.next()
        finally:
            self._turn.put(run)

    def batch(self, count: int) -> list[str]:
        """Return the next ids, all of one moment; one look at the clock for all."""
        run = self._turn.get()
        try:
            ms = self._clock()
            if ms > run.ms:
                run.start(ms, self._entropy(ENTROPY_BYTES))
            return [run.next() for _ in range(count)]
        finally:
            self._turn.put(run)


@dataclass(slots=True)
class _Run:
    """Where the ids stand: the next one is `head`, whose 22 characters are `text`, followed by `tail`'s four.

    Only the tail changes from one id to the next, so that two look-ups make an id.
    """

    ms: int = -1
    head: int = 0
    text: str = ""
    tail: int = 0

    def start(self, ms: int, entropy: bytes) -> None:
        value = _value(ms, entropy)
        self._enter(value >> _TAIL_BITS)
        self.tail = value & (_TAIL_END - 1)

    def next(self) -> str:
        tail = self.tail
        if tail == _TAIL_END:
            self._enter(self.head + 1)
            tail = 0
        self.tail = tail + 1
        return f"{self.text}{_PAIR[tail >> 10]}{_PAIR[tail & 1023]}"

    def _enter(self, head: int) -> None:
        if head == _HEAD_END:
            raise BadUlid("the last possible ULID is used up: set the clock to the present time")
        self.text = _encode(head, pairs=11)
        self.head = head
        self.ms = head >> (80 - _TAIL_BITS)


def new(ms: int, entropy: bytes) -> str:
    """Return the id of this millisecond and these 10 bytes; zero bytes give the millisecond's least id."""
    return _encode(_value(ms, entropy), pairs=13)


def is_valid(text: object) -> bool:
    """Return whether this is a ULID as Penstock writes it: 26 characters, upper case."""
    return isinstance(text, str) and _ULID.fullmatch(text) is not None


def parse(text: object) -> str:
    """Return the id as Penstock writes it; small letters are accepted, as people type them."""
    canonical = text.upper() if isinstance(text, str) and text.isascii() else text
    if not (isinstance(canonical, str) and is_valid(canonical)):
        raise BadUlid(
            f"{shown(text)} is not an id: write its 26 letters and digits, such as 01ARZ3NDEKTSV4RRFFQ69G5FAV"
        )
    return canonical


def timestamp_ms(text: str) -> int:
    """Return the milliseconds since 1970 at which the id was made."""
    ms = 0
    for letter in parse(text)[:10]:
        ms = ms << 5 | _LETTER[letter]
    return ms


def _value(ms: int, entropy: bytes) -> int:
    if not 0 <= ms <= MAX_MS:
        raise BadUlid(f"{ms} ms is outside the years 1970 to 10889 that an id can hold: set the clock")
    if len(entropy) != ENTROPY_BYTES:
        raise BadUlid(f"{len(entropy)} bytes of entropy: give {ENTROPY_BYTES}")
    return ms << 80 | int.from_bytes(entropy)


def _encode(value: int, *, pairs: int) -> str:
    return "".join([_PAIR[value >> shift & 1023] for shift in range(10 * (pairs - 1), -1, -10)])
