"""Payloads: plain JSON goes in unchanged, everything else is refused with the reason."""

import json
from enum import IntEnum, StrEnum
from json import encoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.payloads import MAX_NESTING, BadPayload, Json, checked, dumped, encoder_with

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=30,
)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class TestPythonValues:
    @given(VALUES)
    def test_are_written_as_json_that_reads_back(self, value: object) -> None:
        text = dumped(value)

        assert json.loads(text) == value
        assert checked(text) is text

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
            ("Grüße 💧", '"Grüße 💧"'),
            (((1, 2), (3,)), "[[1,2],[3]]"),
            ({Colour.RED: Size.LARGE, "list": [Colour.RED]}, '{"red":3,"list":["red"]}'),
            ("a\\u0000b", r'"a\\u0000b"'),
            ("\n\t\x1f", r'"\n\t\u001f"'),
            (None, "null"),
            ([], "[]"),
        ],
    )
    def test_keep_their_order_and_are_compact(self, value: object, text: str) -> None:
        assert dumped(value) == text

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            (float("nan"), "holds NaN"),
            ({"a": [float("inf")]}, "infinity"),
            pytest.param(10**5000, "too long", id="long number"),
            ({1: "a"}, "the key 1 is not text"),
            ({"a": [{None: 1}]}, "the key None is not text"),
            ({1: "a", "1": "b"}, "is not text"),
            (b"bytes", "bytes is not JSON serializable: use dict, list"),
            ({"at": object()}, "object is not JSON serializable"),
            ("\ud800", "lone surrogate"),
            ({"\udfff": 1}, "lone surrogate"),
            ("a\0b", "NUL"),
            ({"a\0": 1}, "NUL"),
        ],
    )
    def test_that_json_cannot_say_are_refused(self, value: object, problem: str) -> None:
        with pytest.raises(BadPayload, match=problem):
            dumped(value)

    def test_may_be_nested_so_deep_and_no_deeper(self) -> None:
        value: object = 1
        for _ in range(MAX_NESTING):
            value = [value]
        assert dumped(value) == "[" * MAX_NESTING + "1" + "]" * MAX_NESTING

        with pytest.raises(BadPayload, match="nested deeper than 64"):
            dumped({"a": value})

    def test_that_hold_themselves_are_refused(self) -> None:
        loop: list[object] = []
        loop.append(loop)

        with pytest.raises(BadPayload, match="nested deeper"):
            dumped(loop)

    @given(st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT))
    def test_are_written_alike_flat_and_nested(self, value: dict[str, object]) -> None:
        """A flat object takes a shorter way; a key's fingerprint must not depend on that."""
        assert dumped([value]) == f"[{dumped(value)}]"

    def test_are_written_alike_without_the_c_encoder(self) -> None:
        value = {"a": ["ü", 1.5, None]}

        assert (
            encoder_with(None)(value) == encoder_with(encoder.c_make_encoder)(value) == '{"a":["ü",1.5,null]}'
        )  # type: ignore[attr-defined]


class TestText:
    @given(
        VALUES, st.fixed_dictionaries({"ensure_ascii": st.booleans(), "indent": st.sampled_from([None, 1])})
    )
    def test_stays_as_it_is_however_it_is_written(self, value: object, style: dict[str, Any]) -> None:
        text = json.dumps(value, **style)

        assert checked(text) is text

    @pytest.mark.parametrize(
        "text",
        [
            ' {"a" : 1}\n',
            "1.0",
            "-0",
            "1E+2",
            r'"\ud83d\ude00 \/ \u00e9"',
            r'"\\u0000 \\ud800"',
            r'"\\\\u0000"',
            '"\\u0001"',
            "[" + ",".join(['{"a":"]["}'] * 100) + "]",
            '"' + "[" * 100 + '"',
            "123456789012345678901234567890.123456789012345678901234567890",
        ],
    )
    def test_that_is_plain_json_is_taken(self, text: str) -> None:
        assert checked(text) is text

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "not JSON"),
            ("hello", "not JSON"),
            ("{'a': 1}", "not JSON"),
            ('{"a": 1,}', "not JSON"),
            ('{"a": 1} x', "not JSON"),
            ("[1, 2", "not JSON"),
            ("01", "not JSON"),
            ('"\n"', "not JSON"),
            ('"\\x"', "not JSON"),
            ('\ufeff{"a":1}', "not JSON"),
            ("NaN", "NaN"),
            ("[-Infinity]", "infinity"),
            ("1e999", "infinity"),
            ("9" * 5000, "too long"),
            ('{"a":1,"b":2,"a":1}', "the key 'a' stands twice"),
            ('[{"x":{"\\u0061":1,"a":2}}]', "the key 'a' stands twice"),
            ('"\ud800"', "lone surrogate"),
            (r'"\ud800"', "lone surrogate"),
            (r'"\udc00\ud800"', "lone surrogate"),
            (r'{"\udfff":1}', "lone surrogate"),
            (r'"\\\ud800"', "lone surrogate"),
            ('"\0"', "NUL"),
            ('{"a":1}\0', "NUL"),
            (r'"\u0000"', "NUL"),
            (r'"\\\u0000"', "NUL"),
            ("[" * 65 + "]" * 65, "nested deeper"),
            ('{"a":' * 65 + "1" + "}" * 65, "nested deeper"),
            ("[" * 100_000, "nested deeper"),
        ],
    )
    def test_that_readers_would_not_agree_on_is_refused(self, text: str, problem: str) -> None:
        with pytest.raises(BadPayload, match=problem):
            checked(text)

    def test_that_is_no_text_is_refused(self) -> None:
        with pytest.raises(BadPayload, match="is a dict where JSON text is expected"):
            checked({})


class TestJson:
    def test_is_the_text_itself(self) -> None:
        assert Json(' {"a" : 1} ') == ' {"a" : 1} '

    def test_reads_bytes_as_utf8(self) -> None:
        assert Json('"ü"'.encode()) == '"ü"'

    @pytest.mark.parametrize(
        ("text", "problem"),
        [(b'"\xff"', r"is not UTF-8 \(byte 1\)"), (None, "is a NoneType"), ({}, "is a dict")],
    )
    def test_takes_nothing_else(self, text: bytes, problem: str) -> None:
        with pytest.raises(BadPayload, match=problem):
            Json(text)
