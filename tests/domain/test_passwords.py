"""Passwords: what is asked of them, and how they are kept."""

import pytest

from penstock.domain.passwords import LONGEST, NOBODY, check_password, fits, kept
from penstock.errors import InvalidSetting

SALT = bytes(range(16))


def test_a_password_fits_what_is_kept_of_it_and_no_other_does() -> None:
    stored = kept("correct horse", SALT)

    assert stored.startswith("scrypt$15$8$1$")
    assert "correct" not in stored
    assert fits("correct horse", stored)
    assert not fits("correct Horse", stored)
    assert stored != kept("correct horse", bytes(16))


def test_nothing_fits_nobody() -> None:
    assert not fits("", NOBODY)
    assert not fits("\ud800" * 10, NOBODY)


def test_only_so_much_of_a_password_is_looked_at() -> None:
    stored = kept("x" * LONGEST, SALT)

    assert fits("x" * (LONGEST + 1_000_000), stored)


@pytest.mark.parametrize("password", ["short", "x" * 201, "aaaaaaaaaaaaaa", "Ada.Lovelace"])
def test_some_passwords_may_not_be_set(password: str) -> None:
    with pytest.raises(InvalidSetting, match="password"):
        check_password(password, name="ada.lovelace")


def test_a_sentence_may() -> None:
    assert check_password("several words together", name="ada") == "several words together"
