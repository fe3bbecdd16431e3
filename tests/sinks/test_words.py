"""What a driver says of an error, in plain words."""

import socket
import ssl

import pytest

from penstock.brokers.words import said


def wrapped(inner: Exception) -> Exception:
    error = RuntimeError("Error 111 connecting to 127.0.0.1:1. Connect call failed ('127.0.0.1', 1).")
    error.__cause__ = inner
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (wrapped(ConnectionRefusedError(111, "Connect call failed")), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "certificate verify failed"), "certificate verify failed"),
        (ValueError("two\nlines"), "two lines"),
        (TimeoutError(), "TimeoutError"),
        ("a text", "a text"),
    ],
)
def test_the_system_has_the_word_where_it_said_something(error: object, words: str) -> None:
    assert said(error) == words


def test_a_long_story_is_cut() -> None:
    assert len(said(ValueError("x" * 1000))) <= 301
