"""Files with a secret or a configuration: those without an end, without a writer, and those of a shell."""

import os
from pathlib import Path

import pytest

from penstock.brokers.files import LONGEST, content_of
from penstock.config import file as files
from penstock.errors import InvalidConfig, InvalidSetting


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A pipe with a name, which nobody writes to."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_a_file_that_is_none_is_not_waited_for(fifo: Path) -> None:
    for path in (Path("/dev/zero"), fifo):
        with pytest.raises(InvalidSetting, match=f"{path} cannot be read: it is no regular file"):
            content_of("api_key_FILE", str(path))
        with pytest.raises(InvalidConfig, match=f"{path}: cannot be read: it is no regular file"):
            files.read(path)


def test_what_is_far_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.touch()
    os.truncate(long, 1 << 34)  # nothing is on the disk

    with pytest.raises(InvalidSetting, match="it is longer than 64 KiB"):
        content_of("api_key_FILE", str(long))
    with pytest.raises(InvalidConfig, match="it is longer than 16384 KiB"):
        files.read(long)
    os.truncate(long, 0)
    long.write_text("x" * (LONGEST - 1) + "\n")
    assert len(content_of("api_key_FILE", str(long))) == LONGEST - 1


def test_what_a_shell_hands_over_is_read() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"pk_1\n")
    os.close(theirs)
    try:
        assert content_of("api_key_FILE", f"/dev/fd/{ours}") == "pk_1"
    finally:
        os.close(ours)


@pytest.mark.parametrize(
    "text",
    [
        f"[lanes.x]\nretry = {'[' * 3_000}\n",
        f"port = {'[' * 300}{']' * 300}\n",
        f"port{'.a' * 3_000} = 1\n",
        f"[lanes.x]\nmode{'.a' * 3_000} = 1\n",
    ],
    ids=["without an end", "lists", "a key", "a setting"],
)
def test_what_is_nested_too_deeply_is_refused_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)

    with pytest.raises(InvalidConfig, match=r"deep\.toml: is nested too deeply"):
        files.read(tmp_path / "deep.toml")


def test_no_configuration_is_still_spelled_dev_null() -> None:
    assert files.read(Path("/dev/null")).tables == {}
    with pytest.raises(InvalidSetting, match="/dev/null is empty"):
        content_of("api_key_FILE", "/dev/null")


def test_a_folder_is_still_called_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read: Is a directory"):
        content_of("api_key_FILE", str(tmp_path))
