"""Who may come in: API keys, users, sessions."""

from datetime import timedelta

import pytest

from penstock.domain.access import ROLES, Scope
from penstock.errors import Forbidden, InvalidSetting, NotFound
from penstock.ports.access import NewKey
from penstock.ports.store import Store

HOUR = timedelta(hours=1)
READ = frozenset({Scope.READ})


class AccessTests:
    """API keys, users, sessions."""

    def test_a_key_is_found_by_its_hash_and_listed_without_it(self, store: Store) -> None:
        """What is kept cannot open anything."""
        made = store.add_key(NewKey("k1", "ci", "h1", READ, "acme", HOUR), actor="ops")
        store.add_key(NewKey("k2", "other", "h2", ROLES["admin"]), actor="ops")

        known = store.known_key("h1")
        assert known is not None
        assert known.key == made
        assert (made.name, made.scopes, made.tenant, made.created_by) == ("ci", READ, "acme", "ops")
        assert made.expires_at == made.created_at + HOUR
        assert known.key.problem(known.now) is None
        assert known.key.problem(known.now + HOUR) == "has expired"
        assert store.known_key("h3") is None
        assert {key.name for key in store.api_keys()} == {"ci", "other"}
        assert "h1" not in repr(store.api_keys())

    def test_a_revoked_key_is_still_known_as_such(self, store: Store) -> None:
        """Its name may be given anew."""
        store.add_key(NewKey("k1", "ci", "h1", READ), actor="ops")
        with pytest.raises(InvalidSetting, match='there is a key "ci" already'):
            store.add_key(NewKey("k2", "ci", "h2", READ), actor="ops")
        store.revoke_key("ci", actor="ops", reason="left")
        store.add_key(NewKey("k3", "ci", "h3", READ), actor="ops")
        store.revoke_key("k3", actor="ops", reason="by its id")

        for hash_ in ("h1", "h3"):
            known = store.known_key(hash_)
            assert known is not None
            assert known.key.problem(known.now) == "was revoked"
        assert store.known_key("h2") is None
        with pytest.raises(NotFound):
            store.revoke_key("ci", actor="ops", reason="again")

    def test_the_use_of_a_key_is_noted(self, store: Store) -> None:
        """So that one that nobody uses can go."""
        store.add_key(NewKey("k1", "ci", "h1", READ), actor="ops")
        assert store.api_keys()[0].used_at is None
        store.key_used("k1")
        assert store.api_keys()[0].used_at is not None
        store.key_used("unknown")

    def test_users_are_added_changed_and_removed(self, store: Store) -> None:
        """A password stays what it was unless another is given, and so do scopes."""
        store.put_user("ada", password="p1", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        store.put_user("ada", password=None, scopes=ROLES["admin"], tenant="acme", actor="ops")
        ada = store.put_user("ada", password="p2", scopes=None, tenant=None, actor="ops")  # noqa: S106

        assert store.user("ada") == ada
        assert (ada.password, ada.scopes, ada.tenant) == ("p2", ROLES["admin"], None)
        assert store.users() == [ada]
        assert "p2" not in repr(ada)
        with pytest.raises(NotFound):
            store.put_user("bob", password=None, scopes=READ, tenant=None, actor="ops")
        with pytest.raises(NotFound):
            store.put_user("bob", password="p", scopes=None, tenant=None, actor="ops")  # noqa: S106
        store.remove_user("ada", actor="ops", reason="left")
        with pytest.raises(NotFound):
            store.remove_user("ada", actor="ops", reason="left")
        assert store.user("ada") is None

    def test_of_a_user_stays_what_is_not_given(self, store: Store) -> None:
        """As the store has it by then: whoever changes a password unbinds nobody."""
        store.put_user("ada", password="p1", scopes=READ, tenant="acme", actor="ops")  # noqa: S106
        ada = store.put_user("ada", password="p2", scopes=None, tenant=..., actor="ops")  # noqa: S106
        new = store.put_user("bob", password="p1", scopes=READ, tenant=..., actor="ops")  # noqa: S106

        assert (ada.password, ada.scopes, ada.tenant) == ("p2", READ, "acme")
        assert new.tenant is None
        assert store.users() == [ada, new]
        entries = store.audit_log().entries
        assert '"tenant": "acme"' in str(entries[1].after)

    def test_nobody_changes_somebody_who_may_more(self, store: Store) -> None:
        """By a new password he would come in as that one; it goes by what the user may by then."""
        store.put_user("ada", password="p1", scopes=ROLES["admin"], tenant=None, actor="ops")  # noqa: S106
        with pytest.raises(Forbidden, match="grant what it does not have: admin, enqueue"):
            store.put_user("ada", password="p2", scopes=None, tenant=..., actor="ops", of=READ)  # noqa: S106
        with pytest.raises(Forbidden):
            store.put_user("bob", password="p", scopes=ROLES["admin"], tenant=None, actor="ops", of=READ)  # noqa: S106

        ada = store.user("ada")
        assert ada is not None
        assert ada.password == "p1"  # noqa: S105
        assert store.user("bob") is None

    def test_somebody_new_takes_no_place_of_another(self, store: Store) -> None:
        """He would get a password and rights that were meant for somebody else."""
        ada = store.put_user("ada", password="p1", scopes=READ, tenant=None, actor="ops", new=True)  # noqa: S106
        with pytest.raises(InvalidSetting, match='there is a user "ada" already'):
            store.put_user("ada", password="p2", scopes=READ, tenant=None, actor="ops", new=True)  # noqa: S106

        assert store.user("ada") == ada

    def test_no_session_begins_with_a_password_that_was_changed(self, store: Store) -> None:
        """It was compared before the change, and would outlive the end of all sessions."""
        store.put_user("ada", password="p1", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        store.put_user("ada", password="p2", scopes=None, tenant=..., actor="ops")  # noqa: S106

        assert not store.open_session("s1", "ada", password="p1", most=HOUR)  # noqa: S106
        assert not store.open_session("s1", "nobody", password="p1", most=HOUR)  # noqa: S106
        assert store.session("s1") is None
        assert "user.login" not in {entry.action for entry in store.audit_log().entries}
        assert store.open_session("s2", "ada", password="p2", most=HOUR)  # noqa: S106
        assert store.session("s2") is not None

    def test_a_session_begins_with_the_same_password_kept_anew(self, store: Store) -> None:
        """What was compared is replaced at once, and no session of before ends: it is the same password."""
        store.put_user("ada", password="p1", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        store.open_session("s1", "ada", password="p1", most=HOUR)  # noqa: S106

        assert store.open_session("s2", "ada", password="p1", most=HOUR, anew="p2")  # noqa: S106
        assert not store.open_session("s3", "ada", password="p1", most=HOUR, anew="p3")  # noqa: S106
        ada = store.user("ada")
        assert ada is not None
        assert ada.password == "p2"  # noqa: S105
        assert store.session("s1") is not None
        assert store.session("s2") is not None
        assert store.session("s3") is None

    def test_a_session_lasts_until_it_is_closed_or_its_user_changes(self, store: Store) -> None:
        """Whoever changes a password ends what was begun with the old one."""
        for name in ("ada", "bob"):
            store.put_user(name, password="p1", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        for hash_, name in (("s1", "ada"), ("s2", "ada"), ("s3", "ada"), ("s4", "bob")):
            assert store.open_session(hash_, name, password="p1", most=HOUR)  # noqa: S106

        session = store.session("s1")
        assert session is not None
        assert session.user.name == "ada"
        assert session.user.seen_at is not None
        assert session.created_at <= session.seen_at <= session.now
        store.session_used("s1")
        store.session_used("unknown")
        store.close_session("s1")
        store.close_session("s1")
        assert store.session("s1") is None
        assert store.session("s2") is not None
        store.put_user("ada", password="p2", scopes=None, tenant=None, actor="ops")  # noqa: S106
        assert store.session("s2") is None
        assert store.session("s4") is not None
        store.remove_user("bob", actor="ops", reason="left")
        assert store.session("s4") is None

    def test_old_sessions_are_forgotten(self, store: Store) -> None:
        """The table does not grow for ever."""
        store.put_user("ada", password="p1", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        store.open_session("s1", "ada", password="p1", most=HOUR)  # noqa: S106
        store.open_session("s2", "ada", password="p1", most=-HOUR)  # noqa: S106

        assert store.session("s1") is None
        assert store.session("s2") is not None

    def test_every_change_is_audited_without_secrets(self, store: Store) -> None:
        """Who let whom in, and who did not."""
        store.add_key(NewKey("k1", "ci", "hush1", READ), actor="ops")
        store.revoke_key("ci", actor="ops2", reason="left")
        store.put_user("ada", password="hush2", scopes=READ, tenant=None, actor="ops")  # noqa: S106
        store.put_user("ada", password="hush3", scopes=None, tenant=None, actor="ops")  # noqa: S106
        store.open_session("hush4", "ada", password="hush3", most=HOUR)  # noqa: S106
        store.remove_user("ada", actor="ops", reason="gone")

        entries = store.audit_log().entries
        assert [(entry.action, entry.actor, entry.reason) for entry in reversed(entries)] == [
            ("access.create", "ops", None),
            ("access.revoke", "ops2", "left"),
            ("user.add", "ops", None),
            ("user.change", "ops", None),
            ("user.login", "user:ada", None),
            ("user.remove", "ops", "gone"),
        ]
        assert "hush" not in repr(entries)
