"""What a job is sent to: one name for each, however its URL is written."""

import pytest

from penstock.domain.targets import target_of


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://Example.com/hook?x=1", "https://example.com"),
        ("https://user:secret@example.com:8443/hook", "https://example.com:8443"),
        ("http://example.com:80/x", "http://example.com"),
        ("http://example.com:080", "http://example.com"),
        ("http://example.com:", "http://example.com"),
        ("HTTPS://example.com:443", "https://example.com"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://[::1]/hook", "http://[::1]"),
        ("http://[::1]:80/hook", "http://[::1]"),
        ("http://[::1]:8080/hook", "http://[::1]:8080"),
        ("ftp://example.com:80", "ftp://example.com:80"),
    ],
)
def test_a_target_has_one_name(url: str, name: str) -> None:
    assert target_of(url) == name


@pytest.mark.parametrize("url", [None, "", "/hook", "http://[::1/hook", "http://h:99999/", "http://h:x/"])
def test_what_is_no_url_has_none(url: str | None) -> None:
    assert target_of(url) is None
