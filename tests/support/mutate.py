"""Mutation check: change single lines of a room, and see whether the fast tests notice.

`python tests/support/mutate.py relaxed_lp --seed 0 --count 10` copies the repository into a temporary folder, changes
one place there at a time (an operator, comparison, number, two swapped arguments, a statement left out), and runs first
the test files that name the changed module, then those of its room and of the modules that import it, each until the
first failure. It prints a line for each change, and how many were caught by either; one after which tests do not end
in time counts for nothing. `--tests FOLDER` judges another state of the suite by the same changes. Status 1: clearly
fewer are caught than tests/house/mutants.toml keeps for a room.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import fisher_exact

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "mechanisms", "relaxed_lp")  # imported as marketsched.NAME
OUT_OF_TIME = "out of time"
KEPT = ROOT / "tests" / "house" / "mutants.toml"
FOLDERS = (*ROOMS, "marketsched", "tests", "examples", "docs", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt")

ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+", ast.Pow: "*"}
ORDER = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not"}


@dataclass(frozen=True)
class Mutant:
    """One changed place: the text `old` from byte `start` of a file becomes `new`."""

    path: Path  # relative to the root
    line: int
    start: int
    old: bytes
    new: bytes

    def apply(self, root: Path) -> None:
        """Write the changed file below a root."""
        target = root / self.path
        source = target.read_bytes()
        assert source[self.start : self.start + len(self.old)] == self.old
        target.write_bytes(source[: self.start] + self.new + source[self.start + len(self.old) :])

    def __str__(self) -> str:
        """Return place, old and new text in one line."""
        old, new = (" ".join(text.decode().split())[:60] for text in (self.old, self.new))
        return f"{self.path}:{self.line}: {old}  ->  {new}"


def _places(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes inside functions, without docstrings, annotations and what only words an error."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        stack: list[ast.AST] = list(function.body)
        while stack:
            node = stack.pop()
            wording = isinstance(node, ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.Import | ast.ImportFrom)
            if wording or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            yield node
            stack += [child for field, child in _children(node) if field != "annotation"]


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def mutants(path: Path, root: Path) -> list[Mutant]:
    """Return every change known of one file, in the order of its text."""
    source = (root / path).read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        begin = begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, begins[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def between(left: ast.AST, right: ast.AST, new: str, line: int) -> Mutant:
        """Replace the operator between two operands, and leave the brackets around it."""
        start, end = span(left)[1], span(right)[0]
        old = source[start:end]
        sign = old.strip(b" ()\n\\\t")
        return Mutant(path, line, start, old, old.replace(sign, new.encode(), 1))

    found = []
    for node in _places(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                found.append(between(left, right, ARITHMETIC[type(op)], line))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in ORDER:
                found.append(between(left, right, ORDER[type(op)], line))
            case ast.BoolOp(op=op, values=[left, right]):
                found.append(between(left, right, "or" if isinstance(op, ast.And) else "and", line))
            case ast.Constant(value=value) if isinstance(value, int | float | bool):
                start, end = span(node)
                new = str(not value) if isinstance(value, bool) else str(value + 1)
                found.append(Mutant(path, line, start, source[start:end], new.encode()))
            case ast.Call(args=[one, two, *_]) if not any(isinstance(a, ast.Starred) for a in (one, two)):
                (a, b), (c, d) = span(one), span(two)
                if source[a:b] != source[c:d]:
                    found.append(Mutant(path, line, a, source[a:d], source[c:d] + source[b:c] + source[a:b]))
            case ast.AugAssign() | ast.Expr() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                start, end = span(node)
                found.append(Mutant(path, line, start, source[start:end], b"pass"))
    return sorted({m for m in found if m.old != m.new}, key=lambda m: (m.start, m.old, m.new))


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts if parts[0] == "marketsched" else ("marketsched", *parts))


def chosen_tests(mutant: Mutant, root: Path) -> tuple[list[str], list[str]]:
    """Return the test files that name the changed module; and those of its room and of its direct users."""
    module = _dotted(mutant.path)
    users = {module}
    for room in (*ROOMS, "marketsched"):
        for path in (root / room).rglob("*.py"):
            if path.name != "__init__.py" and f"from {module} import" in path.read_text():
                users.add(_dotted(path.relative_to(root)))
    here, near, room_mates = [], [], []
    room = next(
        f for p in mutant.path.parents if (root / (f := f"tests/{p.as_posix()}".replace("/marketsched", ""))).is_dir()
    )
    for test in sorted((root / "tests").rglob("test_*.py")):
        text, name = test.read_text(), test.relative_to(root).as_posix()
        if f"{module} import" in text:
            here.append(name)
        elif any(f"{user} import" in text for user in users):
            near.append(name)
        elif name.startswith(room):
            room_mates.append(name)
    return here, near + room_mates


def _suite(root: Path, files: list[str], cache: Path, limit: float, of_a_test: float = 60) -> str:
    """Run test files until the first failure; return the name of the test that failed, or nothing."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "CI": "1", "PYTHONSAFEPATH": "1"}
    environment |= {"PYTHONPATH": str(root / "build" / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    command.append(f"--timeout={of_a_test}")
    try:
        done = subprocess.run(
            [*command, *files], cwd=root, env=environment, timeout=limit, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return OUT_OF_TIME
    if done.returncode in (0, 5):
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0][:120] if lines else f"exit status {done.returncode}"


def _copy(source: Path, tests: Path, root: Path) -> None:
    for folder in FOLDERS:
        origin = tests if folder == "tests" else source / folder
        shutil.copytree(origin, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy2(source / name, root / name)
    package = root / "build" / "src" / "marketsched"
    package.mkdir(parents=True)
    for path in [*(root / "marketsched").iterdir(), *(root / room for room in ROOMS)]:
        (package / path.name).symlink_to(path)


def main() -> None:
    """Read the command line, and judge the suite by some changes of one room."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rooms", nargs="+", help="folders or files of the package, such as mechanisms/posted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--source", type=Path, default=ROOT, help="the repository whose package is changed")
    parser.add_argument("--tests", type=Path, help="the tests folder to judge; that of the source unless named")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each of the two runs of a change")
    options = parser.parse_args()
    source = options.source.resolve()
    rooms = [source / room for room in options.rooms]
    paths = [path for room in rooms for path in ([room] if room.is_file() else sorted(room.rglob("*.py")))]
    known = [mutant for path in paths for mutant in mutants(path.relative_to(source), source)]
    picked = random.Random(options.seed).sample(known, min(options.count, len(known)))
    here_caught, caught, late = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root, compiled = Path(folder) / "repository", Path(folder) / "compiled"
        _copy(source, options.tests or source / "tests", root)
        compiled.mkdir()
        chosen = {mutant: chosen_tests(mutant, root) for mutant in picked}
        every = sorted({name for here, near in chosen.values() for name in (*here, *near)})
        failed = _suite(root, every, compiled, 10 * options.limit, of_a_test=600)  # also compiles every kernel, once
        if failed:
            sys.exit(f"without any change: {failed}")
        for mutant in picked:
            begin, good = time.monotonic(), (root / mutant.path).read_bytes()
            stamp = (root / mutant.path).stat()
            here, near = chosen[mutant]
            mutant.apply(root)
            cache = Path(folder) / "kernels"  # a changed kernel must not stay behind for the next change
            shutil.copytree(compiled, cache, copy_function=os.link)
            beside = _suite(root, here, cache, options.limit) if here else ""
            failed = beside or (_suite(root, near, cache, options.limit) if near else "")
            shutil.rmtree(cache)
            (root / mutant.path).write_bytes(good)
            os.utime(root / mutant.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            here_caught += beside not in ("", OUT_OF_TIME)
            caught += failed not in ("", OUT_OF_TIME)
            late += OUT_OF_TIME in (beside, failed)
            how = "UNDECIDED" if failed == OUT_OF_TIME else "beside" if beside else "caught" if failed else "SURVIVED"
            print(f"{how:9}  {mutant}  [{time.monotonic() - begin:.0f} s]  {failed}", flush=True)
    tried = len(picked) - late
    for what, number in (("beside", here_caught), ("room", caught)):
        print(f"{' '.join(options.rooms)}, {what}: {number} of {tried} caught (seed {options.seed})")
    if len(options.rooms) == 1 and _is_worse(options.rooms[0], caught, tried):
        sys.exit("fewer are caught than tests/house/mutants.toml keeps, beyond what chance explains (5 %)")


def _is_worse(room: str, caught: int, tried: int) -> bool:
    """Tell whether a room catches clearly less than it did: Fisher's exact test at 5 %, one-sided."""
    kept = tomllib.loads(KEPT.read_text())["rooms"].get(room)
    if kept is None:
        return False
    table = [[caught, tried - caught], [kept["caught"], kept["tried"] - kept["caught"]]]
    return bool(fisher_exact(table, alternative="less").pvalue < 0.05)


if __name__ == "__main__":
    main()
