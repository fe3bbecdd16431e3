"""Passwords: what is asked of a new one, and how one is kept.

Argon2id with the memory and the passes of RFC 9106's second choice, in one thread: what it costs whoever
guesses is the same, and no log-in takes all cores from dispatching. What is kept names its own cost, so that
another version may ask for another. What scrypt made, which was used before, is still compared and replaced
at the next log-in.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import scrypt
from hmac import compare_digest
from threading import BoundedSemaphore
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from penstock.errors import InvalidSetting

SHORTEST: Final = 10
LONGEST: Final = 200
SALT_BYTES: Final = 16
AT_ONCE: Final = 2  # in one process, whoever asks: each takes 64 MiB while it is at work
_HASHER: Final = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1, hash_len=32)
_COST: Final = f"$argon2id$v=19$m={_HASHER.memory_cost},t={_HASHER.time_cost},p={_HASHER.parallelism}"
_OLD: Final = "scrypt"
_OLD_ROOM: Final = 64 * 1024 * 1024
_TURNS: Final = BoundedSemaphore(AT_ONCE)


def check_password(password: str, *, name: str) -> str:
    """Return a password that may be set, or raise InvalidSetting."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidSetting("password", f"must have from {SHORTEST} to {LONGEST} characters")
    if password.lower() == name.lower() or len(set(password)) < 4:
        raise InvalidSetting("password", "is too easy to guess: use several words, or a password manager")
    return password


def kept(password: str, salt: bytes) -> str:
    """Return what is stored of a password."""
    with _TURNS:
        return _HASHER.hash(_secret(password), salt=salt)


def fits(password: str, stored: str) -> bool:
    """Say whether a password is the one that was stored; a wrong one takes as long as the right one.

    What somebody spoiled in the store fits nothing. It is compared with whoever logs in (`to_compare`): an
    error would let nobody in.
    """
    secret, old = _secret(password), stored.startswith(f"{_OLD}$")
    with _TURNS:
        try:
            return _fits_old(secret, stored) if old else _HASHER.verify(stored, secret)
        except (VerificationError, InvalidHashError, ValueError, TypeError):
            return False


def is_outdated(stored: str) -> bool:
    """Say whether what is stored was made in another way than passwords are kept now."""
    return stored.startswith(f"{_OLD}$") or _HASHER.check_needs_rehash(stored)


def to_compare(own: str | None, everybodys: Iterable[str]) -> list[str]:
    """Return all that a password has to be compared with, one of which is stored of whoever it should be.

    One of every cost there is: how long it takes tells neither whether there is such a user, nor whether what
    is stored of him was made as passwords are kept now.
    """
    mine = None if own is None else _cost_of(own)
    costs = sorted({_COST, *map(_cost_of, everybodys)})
    return [own if own is not None and cost == mine else _nobodys(cost) for cost in costs]


def _cost_of(stored: str) -> str:
    return stored.rsplit("$", 2)[0]


def _nobodys(cost: str) -> str:
    """Return what nothing fits, at this cost."""
    salt, made = (b64encode(bytes(size)).decode() for size in (SALT_BYTES, 32))
    if not cost.startswith(_OLD):
        salt, made = salt.rstrip("="), made.rstrip("=")
    return f"{cost}${salt}${made}"


def _secret(password: str) -> bytes:
    return password[:LONGEST].encode(errors="surrogatepass")


def _fits_old(secret: bytes, stored: str) -> bool:
    _, log_n, r, p, salt, made = stored.split("$")
    found = scrypt(
        secret, salt=b64decode(salt), n=1 << int(log_n), r=int(r), p=int(p), maxmem=_OLD_ROOM, dklen=32
    )
    return compare_digest(found, b64decode(made))
