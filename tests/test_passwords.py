"""Passwords: what is asked of them, and how they are kept."""

import sys
from subprocess import run

import pytest

from penstock.errors import InvalidSetting
from penstock.passwords import LONGEST, check_password, fits, is_outdated, kept, to_compare
from tests.security.conftest import OF_SCRYPT, PASSWORD

SALT = bytes(range(16))
KEPT = kept(PASSWORD, SALT)
CHEAP = "$argon2id$v=19$m=8,t=1,p=1$AAECAwQFBgcICQoLDA0ODw$Df5QnPsxnm9jlneZqtPE2c4G1+mr75903MRdMO2p1gw"
MANY_AT_ONCE = """
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from penstock.passwords import fits, kept

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

stored, before = kept("some password", bytes(16)), peak()
with ThreadPoolExecutor(6) as threads:
    assert all(threads.map(lambda _: fits("some password", stored), range(6)))
print(peak() - before)
"""


def test_a_password_fits_what_is_kept_of_it_and_no_other_does() -> None:
    assert KEPT.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert "correct" not in KEPT
    assert fits(PASSWORD, KEPT)
    assert not fits(PASSWORD.title(), KEPT)
    assert kept(PASSWORD, bytes(16)) != KEPT


@pytest.mark.parametrize("stored", [OF_SCRYPT, CHEAP])
def test_what_was_kept_otherwise_still_fits_and_is_to_be_kept_anew(stored: str) -> None:
    assert fits(PASSWORD, stored)
    assert not fits(PASSWORD.title(), stored)
    assert is_outdated(stored)
    assert not is_outdated(KEPT)


def test_nothing_fits_nobody() -> None:
    [*nobodys] = to_compare(None, [OF_SCRYPT, CHEAP])

    assert len(nobodys) == 3
    for stored in nobodys:
        assert not fits("", stored)
        assert not fits("\ud800" * 10, stored)


@pytest.mark.parametrize("own", [None, KEPT, CHEAP, OF_SCRYPT])
def test_everybody_is_compared_with_as_many_and_as_costly_ones(own: str | None) -> None:
    def shapes(texts: list[str]) -> list[tuple[str, list[int]]]:
        return [(cost, [*map(len, rest)]) for cost, *rest in (text.rsplit("$", 2) for text in texts)]

    compared = to_compare(own, [CHEAP, OF_SCRYPT, OF_SCRYPT])

    assert shapes(compared) == shapes(sorted([KEPT, CHEAP, OF_SCRYPT]))
    assert own is None or own in compared
    assert len(to_compare(own and KEPT, [KEPT])) == 1


def test_what_somebody_spoiled_fits_nothing_and_keeps_nobody_out() -> None:
    spoiled = ["", "plain", "$argon2id$", "$argon2id$ü", KEPT[:-60], CHEAP.replace("m=8", "m=?")]
    spoiled += ["scrypt$", OF_SCRYPT.replace("15", "99")]

    assert [stored for stored in spoiled if fits(PASSWORD, stored)] == []
    assert [one for one in to_compare(KEPT, [KEPT, *spoiled]) if fits(PASSWORD, one)] == [KEPT]


def test_only_so_much_of_a_password_is_looked_at() -> None:
    stored = kept("x" * LONGEST, SALT)

    assert fits("x" * (LONGEST + 1_000_000), stored)


def test_no_more_than_two_are_at_work_at_once() -> None:
    """Each takes 64 MiB: many at once would take a node all its memory."""
    done = run([sys.executable, "-c", MANY_AT_ONCE], check=True, capture_output=True, text=True)

    assert int(done.stdout) < 100 * 1024  # one is at work before we look: the second is what may be added


@pytest.mark.parametrize("password", ["short", "x" * 201, "aaaaaaaaaaaaaa", "Ada.Lovelace"])
def test_some_passwords_may_not_be_set(password: str) -> None:
    with pytest.raises(InvalidSetting, match="password"):
        check_password(password, name="ada.lovelace")


def test_a_sentence_may() -> None:
    assert check_password("several words together", name="ada") == "several words together"
