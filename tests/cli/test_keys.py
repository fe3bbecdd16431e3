"""`penstock keys`: what is shown, what is not, and what a rotation does."""

import json
from contextlib import closing
from pathlib import Path

from penstock.stores.connect import connect
from tests.cli.conftest import Run, RunJson


def secrets(tmp_path: Path, name: str) -> list[str]:
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as store:
        return [secret.secret for secret in store.secrets(name)]


def audit(tmp_path: Path) -> list[tuple[str, str | None, str | None]]:
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as store:
        return [
            (entry.action, entry.after, entry.reason)
            for entry in store.audit_log().entries
            if entry.action.startswith("secret.")
        ]


def test_keys_are_listed_without_themselves(ready: Run, read: RunJson, tmp_path: Path) -> None:
    listed = read("keys", "list")["keys"]

    assert [(key["name"], key["kid"], key["is"]) for key in listed] == [
        ("webhook", "1", "signs"),
        ("token", "1", "signs"),
    ]
    shown = ready("keys", "list").stdout + json.dumps(listed)
    assert not any(secret in shown for name in ("webhook", "token") for secret in secrets(tmp_path, name))


def test_a_rotated_key_signs_and_the_one_before_stays_for_a_while(
    ready: Run, read: RunJson, tmp_path: Path
) -> None:
    before = secrets(tmp_path, "webhook")
    result = ready("keys", "rotate", "webhook", "--reason", "leaked", "--yes")
    ready("keys", "rotate", "token", "--reason", "yearly", "--yes")

    listed = [(key["name"], key["kid"], key["is"]) for key in read("keys", "list")["keys"]]
    assert listed == [
        ("webhook", "2", "signs"),
        ("webhook", "1", "signs along"),
        ("token", "2", "signs"),
        ("token", "1", "verifies"),
    ]
    assert result.stdout == "2\n"
    assert secrets(tmp_path, "webhook")[1:] == before
    assert secrets(tmp_path, "webhook")[0].startswith("whsec_")
    assert [reason for _, _, reason in audit(tmp_path)] == ["yearly", "leaked"]


def test_a_key_is_masked_unless_somebody_says_why(ready: Run, read: RunJson, tmp_path: Path) -> None:
    [secret] = secrets(tmp_path, "webhook")

    assert read("keys", "show", "webhook")["secret"] == "***"  # noqa: S105
    assert secret not in ready("keys", "show", "webhook", "--reveal", code=2).output
    assert audit(tmp_path) == []
    shown = read("keys", "show", "webhook", "--kid", "1", "--reveal", "--reason", "new receiver")

    assert shown["secret"] == secret
    [(action, what, reason)] = audit(tmp_path)
    assert (action, json.loads(what or ""), reason) == (
        "secret.show",
        {"name": "webhook", "kid": "1"},
        "new receiver",
    )


def test_what_there_is_not_is_said_so(ready: Run) -> None:
    assert "webhook/9" in ready("keys", "show", "webhook", "--kid", "9", code=3).output
    ready("keys", "show", "nothing", code=2)
    ready("keys", "rotate", "token", code=2)
    assert "--yes" in ready("keys", "rotate", "token", "--reason", "x", code=2).output


def test_who_looks_for_api_keys_here_finds_them(ready: Run, read: RunJson) -> None:
    assert ready("keys", "list").stderr == ""
    made = ready("keys", "create", "ci", "--scope", "enqueue").stdout.strip()

    assert made.startswith("pk_")
    assert [key["name"] for key in read("access", "list")["keys"]] == ["ci"]
    assert "API keys are in penstock access list" in ready("keys", "list").stderr
    assert read("keys", "revoke", "ci", "--reason", "left", "--yes")["valid"] is False
    assert read("access", "list")["keys"] == []
    assert "penstock access" in ready("keys", "--help").stdout
    assert "penstock keys" in ready("access", "--help").stdout
