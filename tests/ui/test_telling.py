"""What a page tells after something was done, and the way back that it offers."""

import json
from base64 import urlsafe_b64encode

import pytest

from penstock.domain.pools import pool
from penstock.ui.telling import NOTE, Told, Undo, back, read_note, undo
from tests.security.routes import routes_of
from tests.ui.conftest import Seeded


def cookie(told: str | Told) -> str:
    [kept] = back("/lanes?show=all", told).cookies
    assert kept.key == NOTE
    assert kept.value is not None
    return kept.value


def made(note: object) -> str:
    return urlsafe_b64encode(json.dumps(note).encode()).decode()


def test_a_note_brings_its_undo_along() -> None:
    told = Told("Paused.", undo("pools", "a/b", "resume", also="this"))
    fields = {"next": "/lanes?show=all", "reason": "undone"}
    assert read_note(cookie(told)) == {
        "text": "Paused.", "bad": False, "undo": Undo("/pools/a%2Fb/resume?also=this", fields),
    }  # fmt: skip
    assert read_note(cookie("Done.")) == {"text": "Done.", "bad": False, "undo": None}


@pytest.mark.parametrize("to", ["http://[", "//[", "//evil.example", "", "javascript:x"])
def test_what_is_no_page_of_ours_leads_home(to: str) -> None:
    assert back(to, "Done.").url == "/"


def test_a_new_pool_is_no_other_pool_changed(seeded: Seeded) -> None:
    fields = {"name": "new", "rate": "5/s"}
    for told in ("is as you said", "already"):
        page = seeded.http.request("POST", "/pools/set", data=fields, follow_redirects=True)
        assert told in page.text
        fields["rate"] = "9/s"
    assert seeded.client.store.pools()["new"].settings["rate"] == "5/s"


def test_a_pause_tells_on_which_day_it_ends(seeded: Seeded) -> None:
    until, told = (
        {"until": "2096-11-19T14:00:39+01:00", "reason": "they move"},
        "is paused until 2096-11-19 13:00:39 UTC",
    )
    seeded.client.store.put_pool(pool("away"), actor="test")
    things: dict[str, tuple[str, dict[str, str]]] = {
        "/lanes/pay": ("Lane &#34;pay&#34;", {}),
        "/pools/away": ("Pool &#34;away&#34;", {}),
        "/targets": ("https://away.example", {"target": "https://away.example/hook"}),
        "/store": ("Everything", {}),
    }
    for path, (what, fields) in things.items():
        page = seeded.http.request("POST", f"{path}/pause", data=until | fields, follow_redirects=True)
        assert f"{what} {told}." in page.text
        seeded.http.request("POST", f"{path}/resume", data=fields | {"reason": "undone"})
    of_group = {"lane": "pay", "group": "away"}
    acted = seeded.http.request(
        "POST", "/groups/act", data=until | of_group | {"verb": "pause"}, follow_redirects=True
    )
    assert f"Group &#34;away&#34; {told}." in acted.text
    seeded.http.request("POST", "/groups/resume", data=of_group | {"reason": "undone"})


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "1.5", "²"])
def test_what_is_no_number_is_refused_in_words(seeded: Seeded, number: str) -> None:
    job = seeded.http.request("POST", "/jobs/new", data={"lane": "pay", "sequence": number})
    assert (job.status_code, "sequence: write a whole number" in job.text) == (422, True)
    fields = {"verb": "hold", "reason": "test", "rate": number, "next": "/lanes"}
    bulk = seeded.http.request("POST", "/bulk", data=fields, follow_redirects=True)
    assert "write a whole number of jobs a second" in bulk.text


@pytest.mark.parametrize(
    "action",
    ["/lanes/x/delete", "//evil.example/resume", "https://x/resume", "resume", "", "/groups/act?at=/resume"],
)
def test_an_undo_that_somebody_else_made_up_is_none(action: str) -> None:
    note = read_note(made({"text": "Click me", "bad": False, "undo": [action, {}]}))
    assert note is not None
    assert note["undo"] is None


@pytest.mark.parametrize("undo", [7, [], ["/a/resume", []], {"a": 1}])
def test_a_note_that_is_none_says_nothing(undo: object) -> None:
    assert read_note(made({"text": "x", "bad": False, "undo": undo})) is None
    assert read_note("nonsense") is None
    assert read_note(None) is None


def test_a_note_fits_into_a_cookie_whatever_it_says() -> None:
    told = Told("ü" * 2000, undo("groups", "resume", lane="a" * 63, group="ü" * 127))
    assert len(cookie(told)) < 3900


def test_what_a_page_does_needs_what_the_api_needs(seeded: Seeded) -> None:
    needs = {(route.method, route.path): route.needs.scope for route in routes_of(seeded.http.node)}
    same = {
        ("POST", "/lanes/{name}/disable"): ("PUT", "/api/lanes/{name}"),
        ("POST", "/lanes/{name}/enable"): ("PUT", "/api/lanes/{name}"),
        ("POST", "/lanes/{name}/set"): ("PUT", "/api/lanes/{name}"),
        ("POST", "/lanes/{name}/pause"): ("POST", "/api/lanes/{name}/pause"),
        ("POST", "/lanes/{name}/test"): ("POST", "/api/jobs"),
        ("POST", "/pools/set"): ("PUT", "/api/pools/{name}"),
        ("POST", "/targets/{verb}"): ("POST", "/api/targets/pause"),
        ("POST", "/nodes/{node}/{verb}"): ("POST", "/api/nodes/{node}/drain"),
        ("POST", "/groups/act"): ("POST", "/api/groups/pause"),
        ("POST", "/store/{verb}"): ("POST", "/api/pause"),
        ("POST", "/access"): ("POST", "/api/access"),
        ("POST", "/access/revoke"): ("DELETE", "/api/access/{name}"),
        ("POST", "/access/users"): ("PUT", "/api/users/{name}"),
        ("POST", "/jobs/{job_id}/{verb}"): ("POST", "/api/jobs/{job_id}/hold"),
    }
    assert {page: needs[page] for page in same} == {page: needs[api] for page, api in same.items()}
