from base64 import b64decode

from penstock.domain.secrets import NAMES, TOKEN, WEBHOOK, new_secret


def drawn(count: int) -> bytes:
    return bytes(range(count))


def test_a_webhook_key_is_spelt_as_standard_webhooks_want_it() -> None:
    key = new_secret(WEBHOOK, drawn)

    assert key.startswith("whsec_")
    assert b64decode(key.removeprefix("whsec_"), validate=True) == drawn(32)


def test_another_key_is_safe_in_a_url() -> None:
    key = new_secret(TOKEN, lambda count: b"\xff" * count)

    assert key == "_" * 42 + "8"


def test_two_keys_are_made_by_the_first_migration() -> None:
    assert NAMES == ("webhook", "token")
