"""Options of `[sinks.NAME]`."""

from pathlib import Path

import pytest

from penstock.brokers.options import flag, number, one_of, required, size, with_files
from penstock.errors import InvalidSetting


def test_options_are_read_from_files_and_from_the_environment() -> None:
    options = {"n": 5, "m": "7", "on": True, "off": "false", "size": "8MiB", "word": "b", "url": "x"}

    assert (number(options, "n"), number(options, "m"), number(options, "o"), number({}, "n", 3)) == (
        5,
        7,
        None,
        3,
    )
    assert (flag(options, "on"), flag(options, "off", default=True), flag({}, "x")) == (True, False, False)
    assert (size(options, "size", 1), size({}, "size", 1)) == (8 * 1024 * 1024, 1)
    assert (one_of(options, "word", ["a", "b"], "a"), one_of({}, "word", ["a", "b"], "a")) == ("b", "a")
    assert required(options, "url", "y") == "x"


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1.5", "", "ten", "²", "9" * 5000])
def test_a_number_is_a_whole_one_from_1_on(value: str | float) -> None:
    with pytest.raises(InvalidSetting, match="number from 1 on"):
        number({"n": value}, "n")


@pytest.mark.parametrize("value", [1, "yes", ("true",)])
def test_a_flag_is_true_or_false(value: int | str | tuple[str, ...]) -> None:
    with pytest.raises(InvalidSetting, match="neither true nor false"):
        flag({"n": value}, "n")


def test_every_mistake_says_what_to_write() -> None:
    with pytest.raises(InvalidSetting, match='is missing: write url = "redis://'):
        required({}, "url", "redis://127.0.0.1:6379/0")
    with pytest.raises(InvalidSetting, match="is none of a, b"):
        one_of({"w": "c"}, "w", ["a", "b"], "a")
    with pytest.raises(InvalidSetting, match="256KiB"):
        size({"s": 5}, "s", 1)


def test_what_a_file_holds_is_the_option_and_a_file_that_holds_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")

    assert with_files({"password_FILE": str(tmp_path / "secret"), "n": 1}) == {"password": "hush", "n": 1}
    with pytest.raises(InvalidSetting, match=r"password_FILE: .*empty is empty: write the password into it"):
        with_files({"password_FILE": str(tmp_path / "empty")})
    with pytest.raises(InvalidSetting, match="gone cannot be read: No such file or directory"):
        with_files({"password_FILE": str(tmp_path / "gone")})
    with pytest.raises(InvalidSetting, match="bytes cannot be read"):
        with_files({"password_FILE": str(tmp_path / "bytes")})
