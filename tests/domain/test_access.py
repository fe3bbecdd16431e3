"""Scopes, roles, and what is hidden from those who lack the scope `payload`."""

import pytest

from penstock.domain.access import (
    LOCAL,
    ROLES,
    Scope,
    Who,
    check_granted,
    check_label,
    check_scopes,
    hashed,
    new_key,
    new_token,
    proof,
    role_of,
    spelled,
    told,
)
from penstock.domain.masking import masked_in, without_content, without_credentials, without_words
from penstock.errors import Forbidden, InvalidSetting
from tests.domain.test_explaining import job


def test_roles_are_bundles_of_scopes() -> None:
    assert ROLES["viewer"] == {Scope.READ}
    assert ROLES["operator"] == set(Scope) - {Scope.ADMIN}
    assert ROLES["admin"] == set(Scope)
    assert LOCAL.sees_all


def test_nobody_grants_more_than_he_has() -> None:
    assert check_granted(ROLES["viewer"], ROLES["operator"], "ops") == ROLES["viewer"]
    with pytest.raises(Forbidden, match="grant what it does not have: admin"):
        check_granted(ROLES["admin"], ROLES["operator"], "ops")


def test_scopes_are_given_by_name_and_by_role() -> None:
    assert check_scopes(["payload"], ["viewer"]) == {Scope.READ, Scope.PAYLOAD}
    assert check_scopes(["enqueue"]) == {Scope.ENQUEUE}
    assert spelled(check_scopes(["payload"], ["viewer"])) == "read,payload"
    assert role_of(check_scopes([], ["viewer"])) == "viewer"
    assert role_of(check_scopes(["enqueue"])) is None
    assert told(check_scopes([], ["admin"])) == "admin"
    assert told(check_scopes(["admin"])) == "admin alone"
    assert told(check_scopes(["read", "enqueue"])) == "read,enqueue"


def test_the_scope_admin_is_not_the_role() -> None:
    assert check_scopes(["admin"]) == {Scope.ADMIN}
    assert check_scopes([], ["admin"]) == set(Scope)


@pytest.mark.parametrize(
    ("names", "roles", "problem"),
    [(["root"], [], "is none of read"), ([], ["root"], "is none of viewer"), ([], [], "there is none")],
)
def test_other_scopes_are_refused(names: list[str], roles: list[str], problem: str) -> None:
    with pytest.raises(InvalidSetting, match=problem):
        check_scopes(names, roles)


def test_somebody_with_a_tenant_or_without_payloads_does_not_see_all() -> None:
    assert not Who("a", frozenset(Scope), "t").sees_all
    assert not Who("a", frozenset({Scope.READ})).sees_all
    assert Who("a", frozenset({Scope.READ})).may(Scope.READ)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (None, None),
        ("HTTP 500: card 4242 declined\nand more", "HTTP 500"),
        ("HTTP 500", "HTTP 500"),
        ("HTTP 200, but the answer broke off: 4242", "HTTP 200"),
        ("CardError: 4242 was declined", "CardError"),
        ("TimeoutError", "TimeoutError"),
        ("target: holds a user name: 4242", "target: holds a user name"),
        ("target: 4242", "***"),
        ("card 4242 declined", "***"),
        ("4242Error: no", "***"),
        ("HTTP 4242: no", "***"),
        ("", ""),
        ("***", "***"),
        ("no connection to example.com:443: Connection refused", None),
        ("no connection to example.com:443 in time", None),
        ("no connection to example.com:443: card 4242", "***"),
        ("no answer from [::1]:443: Server disconnected", None),
        ("no answer within 0.5 s", None),
        ("no answer within 0.5 s for 4242", "***"),
        ("a.example:80 cannot be found: Name or service not known", None),
        ("the node stopped while it was being sent", None),
    ],
)
def test_what_others_said_is_left_out_and_what_we_say_is_not(error: str | None, shown: str | None) -> None:
    assert without_words(error) == (shown or error)


def test_a_job_is_shown_without_what_it_carries() -> None:
    whole = job(error="HTTP 402: card 4242 declined", receipt="200 charged 4242")
    shown = without_content(whole._replace(result="4242"))

    assert shown.hidden
    assert "4242" not in repr(shown)
    assert shown.context is not None
    assert shown.context.payload is None
    assert without_content(whole._replace(context=None)).context is None


def test_a_key_has_256_random_bits_and_is_kept_as_a_hash() -> None:
    key = new_key(lambda n: bytes(range(n)))

    assert key.startswith("pk_")
    assert len(key) == 3 + 43
    assert key == "pk_" + new_token(lambda n: bytes(range(n)))
    assert len(hashed(key)) == 64
    assert hashed(key) != hashed(key + "x")
    assert hashed("\ud800")


@pytest.mark.parametrize("name", ["ci", "a.b@example.com", "A-1_x+y"])
def test_names_of_keys_and_users(name: str) -> None:
    assert check_label(name) == name


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\n", "é", "x" * 64, "a/b", "<b>"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match="name"):
        check_label(name)


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (None, None),
        ('{"X-A":"1"}', '{"X-A":"1"}'),
        ('{"Authorization":"Bearer x","X-A":"1"}', '{"Authorization": "***", "X-A": "1"}'),
        ('{"x-api-key":"x","Cookie":"y"}', '{"x-api-key": "***", "Cookie": "***"}'),
        ('["token"]', '["token"]'),
        ('{"token', '"***"'),
    ],
)
def test_headers_that_open_something_are_masked(headers: str | None, shown: str | None) -> None:
    assert without_credentials(headers) == shown


def test_a_mask_that_comes_back_is_noticed() -> None:
    assert masked_in({"X-A": "1", "Authorization": "***"}) == "Authorization"
    assert masked_in({"X-A": "***"}) is None


def test_a_key_is_shown_without_the_line_end_of_its_file() -> None:
    assert proof("pk_a\r\n") == {"Authorization": "Bearer pk_a"}
    assert proof(None) == proof("") == proof("\n") == {}
    with pytest.raises(InvalidSetting) as caught:
        proof("pk_a\npk_b")
    assert "pk_a" not in str(caught.value)
