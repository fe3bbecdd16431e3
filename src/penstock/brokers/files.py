"""Files that somebody names, read to a bound; some hold one value, as orchestrators hand out secrets."""

import errno
from pathlib import Path
from typing import Final

from penstock.errors import InvalidSetting

FILE: Final = "_FILE"  # `password_FILE` is the name of the file that holds `password`

LONGEST: Final = 64 * 1024
# What a shell hands over, `<(pass show key)`, and what stands for no configuration.
_OPEN: Final = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/", "/dev/null")


def text_of(path: Path, most: int) -> str:
    """Return the text of a file, or raise OSError, also where it would never end or nobody writes it."""
    special = path.exists() and not path.is_file() and not path.is_dir()
    if special and not str(path.absolute()).startswith(_OPEN):
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open(encoding="utf-8") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most // 1024} KiB")
    return text


def content_of(name: str, path: object) -> str:
    """Return what the file holds that `name` names, without the line's end, or raise InvalidSetting."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise InvalidSetting(name, 'write the name of a file, like "/run/secrets/penstock"')
    try:
        content = text_of(Path(path), LONGEST).strip()
    except OSError as error:
        raise InvalidSetting(name, f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:  # whose own words would quote what the file holds
        raise InvalidSetting(name, f"{path} cannot be read: it is no UTF-8 text") from None
    if not content:
        raise InvalidSetting(name, f"{path} is empty: write the {name.removesuffix(FILE)} into it")
    return content
