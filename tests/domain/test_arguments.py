"""What callers hand over beside jobs, refused by name."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from penstock.domain import arguments
from penstock.domain.states import Verb
from penstock.errors import InvalidJob, InvalidQuery, InvalidSetting, NotFound, PenstockError

BAD: list[tuple[Callable[[object], object], object, type[PenstockError], str]] = [
    (arguments.known_id, "x", NotFound, 'no job "x"'),
    (arguments.check_reason, "", InvalidJob, "reason: write a text"),
    (arguments.check_actor, "\ud800", InvalidSetting, "actor: holds a lone surrogate"),
    (arguments.check_several, {"lane": "mail"}, InvalidJob, "jobs: is one dict: give a list of jobs"),
    (arguments.check_several, "mail", InvalidJob, "jobs: is one str: give a list of jobs"),
    (arguments.check_batch, 0, InvalidJob, "batch: 0 is no size"),
    (arguments.check_reason, " ", InvalidJob, "reason: say why"),
    (arguments.check_group, "a\0", InvalidQuery, "group: holds a NUL"),
    (arguments.check_key, "\0", InvalidQuery, "key: .* NUL"),
    (arguments.check_timeout, "5", InvalidQuery, "timeout: '5' is no stretch of time"),
    (arguments.check_timeout, True, InvalidQuery, "timeout: True is no stretch of time"),
    (arguments.check_timeout, float("nan"), InvalidQuery, "timeout: nan is no stretch of time"),
    (arguments.check_verb, "zap", InvalidJob, "verb: there is no 'zap'; known are cancel"),
    (arguments.check_verb, "skp", InvalidJob, "did you mean skip?"),
    (arguments.check_verb, "edit", InvalidJob, "use edit"),
    (
        lambda given: arguments.check_edit({"payload": 1, str(given): 1}),
        "lane",
        InvalidJob,
        "lane: cannot be edited",
    ),
    (lambda value: arguments.check_filter("key", value), 7, InvalidQuery, "key: 7 is no text"),
    (lambda value: arguments.check_filter("key", value), "\0", InvalidQuery, "key: holds a NUL"),
    (lambda value: arguments.check_filter("key", value), "\udcff", InvalidQuery, "key: holds a lone"),
]


@pytest.mark.parametrize(("check", "value", "error", "words"), BAD, ids=[words for *_, words in BAD])
def test_what_cannot_be_is_refused(
    check: Callable[[object], object], value: object, error: type[PenstockError], words: str
) -> None:
    with pytest.raises(error, match=words):
        check(value)


def test_what_can_be_comes_back() -> None:
    assert arguments.known_id("01arz3ndektsv4rrffq69g5fav") == "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert arguments.check_reason("r") == "r"
    assert arguments.check_actor("ann") == "ann"
    assert arguments.check_batch(1) == 1
    assert arguments.check_timeout(None) is None
    assert arguments.check_timeout(timedelta(1)) == timedelta(1)
    assert arguments.check_timeout(0.5) == timedelta(milliseconds=500)
    assert arguments.check_key("k") == "k"
    assert arguments.check_group("g") == "g"
    assert arguments.check_verb("skip") is Verb.SKIP
    arguments.check_edit({"payload": 1})
    arguments.check_several([{"lane": "mail"}])
    assert arguments.check_filter("key", "ü") == "ü"
