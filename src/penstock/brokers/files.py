"""Files that hold one value each: secrets as orchestrators hand them out."""

from pathlib import Path
from typing import Final

from penstock.errors import InvalidSetting

FILE: Final = "_FILE"  # `password_FILE` is the name of the file that holds `password`


def content_of(name: str, path: object) -> str:
    """Return what the file holds that `name` names, without the line's end, or raise InvalidSetting."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise InvalidSetting(name, 'write the name of a file, like "/run/secrets/penstock"')
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidSetting(name, f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:  # whose own words would quote what the file holds
        raise InvalidSetting(name, f"{path} cannot be read: it is no UTF-8 text") from None
    if not content:
        raise InvalidSetting(name, f"{path} is empty: write the {name.removesuffix(FILE)} into it")
    return content
