"""Keys that nodes share: made once, rotated, never told by the audit."""

from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable

import pytest

from penstock.errors import InvalidSetting, NotFound
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import together


class SecretTests:
    """Keys by name."""

    def test_a_migrated_store_has_a_key_for_webhooks_and_one_for_tokens(self, store: Store) -> None:
        """Of 32 random bytes each, spelt as Standard Webhooks want it, or safe in a URL."""
        store.migrate()

        [webhook], [token] = store.secrets("webhook"), store.secrets("token")
        assert webhook.secret.startswith("whsec_")
        assert len(b64decode(webhook.secret.removeprefix("whsec_"), validate=True)) == 32
        assert len(token.secret) == 43
        assert len(urlsafe_b64decode(token.secret + "=")) == 32
        assert webhook.retired_at is None
        assert (webhook.name, token.name) == ("webhook", "token")
        assert store.secrets("another") == []

    def test_migrating_again_changes_no_key(self, store: Store) -> None:
        """Nor does it bring back one that was replaced."""
        store.migrate()
        store.add_secret("token", "k2", "new", actor="ops")
        before = [store.secrets(name) for name in ("webhook", "token")]
        store.migrate()

        assert [store.secrets(name) for name in ("webhook", "token")] == before

    def test_several_who_migrate_at_once_make_one_key(self, store: Store) -> None:
        """Everybody signs with the same."""
        together(*[store.migrate] * 4)

        assert [len(store.secrets(name)) for name in ("webhook", "token")] == [1, 1]

    def test_a_new_key_signs_and_the_others_still_verify(self, store: Store) -> None:
        """The one that signs is first."""
        store.migrate()
        store.add_secret("webhook", "k2", "second", actor="ops")
        store.add_secret("webhook", "k3", "third", actor="ops")

        keys = store.secrets("webhook")
        assert (keys[0].kid, keys[0].secret) == ("k3", "third")
        assert {key.kid for key in keys} == {"1", "k2", "k3"}
        assert [key.retired_at is None for key in keys] == [True, False, False]
        assert len(store.secrets("token")) == 1

    def test_of_several_who_rotate_at_once_one_signs(self, store: Store) -> None:
        """The others' keys are retired."""
        store.migrate()

        def rotate(kid: str) -> Callable[[], None]:
            return lambda: store.add_secret("token", kid, kid, actor="ops")

        together(*(rotate(f"k{n}") for n in range(4)))
        assert [key.retired_at is None for key in store.secrets("token")] == [True, *[False] * 4]

    def test_a_name_that_is_taken_is_refused(self, store: Store) -> None:
        """Nothing changes."""
        store.migrate()
        before = store.secrets("token")

        with pytest.raises(InvalidSetting, match="choose another name"):
            store.add_secret("token", "1", "other", actor="ops")
        assert store.secrets("token") == before

    def test_the_audit_tells_who_but_not_the_key(self, store: Store) -> None:
        """And neither does a key that is shown."""
        store.migrate()
        store.add_secret("token", "k2", "hush", actor="ops")

        [entry] = [entry for entry in store.audit_log().entries if entry.action == "secret.add"]
        assert (entry.actor, entry.after) == ("ops", '{"name": "token", "kid": "k2"}')
        assert "hush" not in repr(store.audit_log())
        assert "hush" not in repr(store.secrets("token"))

    def test_who_sees_a_key_is_noted_with_the_reason(self, store: Store) -> None:
        """Reading one for a person leaves a trace, without the key."""
        store.add_secret("webhook", "k2", "hush", actor="ops", reason="yearly")

        assert store.show_secret("webhook", "k2", actor="ann", reason="new receiver").secret == "hush"  # noqa: S105
        with pytest.raises(NotFound):
            store.show_secret("webhook", "k9", actor="ann", reason="lost")
        shown, added = store.audit_log().entries[:2]
        assert (shown.action, shown.actor, shown.reason) == ("secret.show", "ann", "new receiver")
        assert (added.action, added.reason) == ("secret.add", "yearly")
        assert "hush" not in f"{shown}{added}"
