"""What is not shown of a job to those who may not see what it carries."""

import json

import pytest

from penstock.domain.masking import (
    MASK,
    is_answer,
    password_in,
    without_answer,
    without_hashes,
    without_password,
)


@pytest.mark.parametrize("noted", [None, "{}", '{"target": "http://a"}'])
def test_notes_without_hashes_stay_as_they_are(noted: str | None) -> None:
    assert without_hashes(noted) == noted


def test_hashes_of_what_was_sent_are_masked_and_the_rest_stays() -> None:
    noted = json.dumps({"payload": "sha256:00ff", "target": "http://a", "version": 2})
    shown = without_hashes(noted)
    assert shown is not None
    assert json.loads(shown) == {"payload": MASK, "target": "http://a", "version": 2}


def test_of_an_answer_its_number_is_shown() -> None:
    text = "target http://a: HTTP 402: the card of Ada was declined"
    assert without_answer(text) == "target http://a: HTTP 402"
    assert without_answer("it does not answer") == "it does not answer"


@pytest.mark.parametrize("receipt", ["200", "204 card\n4242"])
def test_a_receipt_that_begins_with_a_status_is_an_answer(receipt: str) -> None:
    assert is_answer(receipt)


@pytest.mark.parametrize("receipt", ["m-200 4242", "orders/0/200", "2001"])
def test_a_receipt_that_does_not_is_the_id_of_a_message(receipt: str) -> None:
    assert not is_answer(receipt)


@pytest.mark.parametrize(
    ("password", "host"),
    [
        ("secret", "h/db"),
        ("se#cr?et", "h:5432/db?sslmode=disable"),
        ("se@cr@et", "h"),
        ("se/cr:et", "[::1]:5432/db"),
        ("se%zz cret", "a:1,b:2/db"),
        ("", "h"),
    ],
)
@pytest.mark.parametrize("user", ["ann", "", "ann@server"])
def test_an_address_is_shown_without_its_password_whatever_that_holds(
    user: str, password: str, host: str
) -> None:
    address = f"postgresql://{user}:{password}@{host}"
    assert password_in(address) == password
    assert without_password(address) == f"postgresql://{user}:***@{host}"


@pytest.mark.parametrize("before", ["postgresql:/", "postgresql:///", "redis:/", "", "://"])
@pytest.mark.parametrize("user", ["ann", ""])
def test_a_password_is_not_shown_of_what_is_no_address(before: str, user: str) -> None:
    """The slashes are forgotten, the error quotes the rest."""
    address = f"{before}{user}:p w/4:2@h:5432/db"
    assert password_in(address) == "p w/4:2"
    assert without_password(address) == f"{before}{user}:***@h:5432/db"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql:ann:x@h/db", "postgresql:***@h/db"),
        ("redis::x@h", "redis:***@h"),
        (
            "postgresql://h/db?user=a&password=x y&sslmode=disable",
            "postgresql://h/db?user=a&password=***&sslmode=disable",
        ),
        ("postgresql://h/db?sslpassword=x", "postgresql://h/db?sslpassword=***"),
        ("host=h password=x", "host=h password=***"),
    ],
)
def test_a_password_among_options_is_not_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann@h:5432/db",
        "postgresql://h:5432",
        "sqlite:///a@b.db",
        "",
        "nothing",
        "h:9092",
        "a@h:22",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert password_in(address) is None
    assert without_password(address) == address
