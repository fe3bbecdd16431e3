"""Passwords: what is asked of a new one, and how one is kept.

scrypt with 32 MiB: some tenths of a second for whoever guesses, each time, and no library of its own. What is
kept names its own cost, so that a later version may ask for more.
"""

from base64 import b64decode, b64encode
from hashlib import scrypt
from hmac import compare_digest
from typing import Final

from penstock.errors import InvalidSetting

SHORTEST: Final = 10
LONGEST: Final = 200
SALT_BYTES: Final = 16
_LOG_N: Final = 15
_R: Final = 8
_P: Final = 1
_ROOM: Final = 64 * 1024 * 1024
# What an unknown name is compared with, so that it takes as long as a wrong password: nothing fits it.
NOBODY: Final = (
    f"scrypt${_LOG_N}${_R}${_P}${b64encode(bytes(SALT_BYTES)).decode()}${b64encode(bytes(32)).decode()}"
)


def check_password(password: str, *, name: str) -> str:
    """Return a password that may be set, or raise InvalidSetting."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidSetting("password", f"must have from {SHORTEST} to {LONGEST} characters")
    if password.lower() == name.lower() or len(set(password)) < 4:
        raise InvalidSetting("password", "is too easy to guess: use several words, or a password manager")
    return password


def kept(password: str, salt: bytes) -> str:
    """Return what is stored of a password."""
    made = _made(password, salt, log_n=_LOG_N, r=_R, p=_P)
    return f"scrypt${_LOG_N}${_R}${_P}${b64encode(salt).decode()}${b64encode(made).decode()}"


def fits(password: str, stored: str) -> bool:
    """Say whether a password is the one that was stored; a wrong one takes as long as the right one."""
    kind, log_n, r, p, salt, made = stored.split("$")
    found = _made(password[:LONGEST], b64decode(salt), log_n=int(log_n), r=int(r), p=int(p))
    return compare_digest(found, b64decode(made)) and kind == "scrypt"


def _made(password: str, salt: bytes, *, log_n: int, r: int, p: int) -> bytes:
    secret = password.encode(errors="surrogatepass")
    return scrypt(secret, salt=salt, n=1 << log_n, r=r, p=p, maxmem=_ROOM, dklen=32)
