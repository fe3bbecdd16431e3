"""The command line: each command parses, calls, prints."""

from typing import Final

INTERRUPTED: Final = 130  # what shells expect of a program that Ctrl-C ended
