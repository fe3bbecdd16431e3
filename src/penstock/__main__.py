"""`penstock` and `python -m penstock`. What takes long to import is imported where Ctrl-C is expected."""

import sys

from penstock.cli import INTERRUPTED


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded is no traceback."""
    try:
        from penstock.cli.main import main as command_line  # noqa: PLC0415

        command_line()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
