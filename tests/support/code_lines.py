"""Lines of code by room: those with a token that is neither a comment nor a docstring.

python tests/support/code_lines.py          # prints the table of tests/house/budget.toml for this tree
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "mechanisms", "relaxed_lp")
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def room_of(path: Path) -> str:
    """Return the room of a file: a folder at the top, one of ``marketsched``, or a slice's part of ``mechanisms``."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "marketsched":
        return parts[1] if len(parts) > 2 else "doors"
    return "/".join(parts[:2]) if parts[:2] in {("mechanisms", "allocation"), ("mechanisms", "finite")} else parts[0]


def code_lines(source: str) -> int:
    """Return the number of lines with code.

    >>> code_lines('def f():\\n    \"\"\"Doc.\"\"\"\\n\\n    return (1,  # one\\n            2)\\n')
    3
    """
    docs = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and isinstance(node.body[0].value.value, str)
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    seen: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            seen |= set(range(token.start[0], token.end[0] + 1))
    return len(seen - docs)


def by_room() -> Counter[str]:
    """Return the lines of code of each room of the package."""
    found: Counter[str] = Counter()
    for folder in ("marketsched", *ROOMS):
        for path in (ROOT / folder).rglob("*.py"):
            found[room_of(path)] += code_lines(path.read_text())
    return found


if __name__ == "__main__":
    for room, lines in sorted(by_room().items()):
        print(f'"{room}" = {lines}')
