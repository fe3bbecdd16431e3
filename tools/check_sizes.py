"""Fail when a module or a function has grown past what one reader holds in mind: `check_sizes.py DIR...`."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 400
FUNCTION_LINES = 60


def too_long(path: Path) -> Iterator[str]:
    """Yield one complaint for the module and one for each of its functions that is over the limit."""
    source = path.read_text(encoding="utf-8")
    lines = len(source.splitlines())
    if lines > MODULE_LINES:
        yield f"{path}: {lines} lines, at most {MODULE_LINES}"
    for node in ast.walk(ast.parse(source, filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES}"


def main(folders: list[str]) -> int:
    """Print every complaint; return 1 when there was any."""
    paths = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    complaints = [complaint for path in paths for complaint in too_long(path)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
