"""Lines of code by room: those that are neither blank nor a comment, nor part of a docstring.

python tests/support/code_lines.py          # prints the table of tests/house/budget.toml for this tree
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "mechanisms", "relaxed_lp")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


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
    docs: set[int] = set()
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:  # statements alone: most of a tree are expressions, which hold no docstring
        node = todo.pop()
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        todo += [each for each in ast.iter_child_nodes(node) if isinstance(getattr(each, "body", None), list)]
    lines = enumerate(map(str.strip, source.split("\n")), 1)
    return sum(1 for i, line in lines if line and not line.startswith("#") and i not in docs)


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
