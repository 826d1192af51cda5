"""Pages of the reference: one list per package, from the names it promises in its `__init__.pyi`."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from marketsched.mechanisms.legal import LARGEST_WHOLE, Finite, Maybe, Range, Whole
from marketsched.mechanisms.signatures import parameters_of

# In the order of the side bar: dotted name, folder of its `__init__.pyi`, title, what it is for.
PACKAGES = (
    ("marketsched", "marketsched", "marketsched", "What scripts and notebooks need, under one name."),
    ("marketsched.mechanisms", "mechanisms", "Mechanisms", "Statements of work, rules, prices, oracles, errors."),
    ("marketsched.mechanisms.finite", "mechanisms/finite", "Finite mechanisms", "Finitely many types, exactly."),
    (
        "marketsched.mechanisms.allocation",
        "mechanisms/allocation",
        "Allocation cores",
        "OgaSched, ESDP, OPM, their baselines, and what they play on.",
    ),
    ("marketsched.relaxed_lp", "relaxed_lp", "Relaxed problem", "Bounds on what any schedule could have earned."),
    ("marketsched.agents", "agents", "Agents", "The market of owners, their strategies and how they learn."),
    (
        "marketsched.truthfulness",
        "marketsched/truthfulness",
        "Truthfulness",
        "Audits, certificates, searches for lies, checks for mechanisms of your own.",
    ),
    ("marketsched.study", "marketsched/study", "Studies", "Sweeps and the papers' figures."),
    ("marketsched.worlds", "marketsched/worlds", "Workloads", "Jobs: made up, from a trace, or from a log."),
    ("marketsched.worlds.traces", "marketsched/worlds/traces", "Traces", "Readers of published traces."),
)
ALSO = {  # public modules without a list of their own
    "marketsched.env": (
        "Environments",
        "Markets as environments for reinforcement learning.",
        ("MarketEnv", "OwnerEnv", "parallel_env"),
    ),
    "marketsched.live.client": (
        "Live market",
        "The client of a market that runs, and its errors.",
        ("LiveClient", "LiveError", "LiveUnavailableError"),
    ),
    "marketsched.testing": ("Testing", "Suites for one's own mechanism.", ("mechanism_tests",)),
}


def listed(stub: Path) -> dict[str, str]:
    """Return by name the module, relative to the package, that a stub imports it from."""
    tree = ast.parse(stub.read_text())
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                found[alias.asname or alias.name] = f"{'.' * statement.level}{statement.module}"
    return found


def _page(package: str, title: str, purpose: str, names: list[str]) -> str:
    lines = [f"# {title}", "", purpose, "", "```{eval-rst}"]
    lines += [f".. currentmodule:: {package}", ""] if package else []
    lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", "", *(f"   {n}" for n in names)]
    return "\n".join([*lines, "```", ""])


def write_reference(root: Path, folder: Path) -> None:
    """Write one page per package; a name that a package above lists already is described there alone.

    Files that would not change are left, so that the next build reads only what did.
    """
    seen: dict[tuple[str, str], str] = {}
    for package, place, title, purpose in PACKAGES:
        names = []
        for name, module in listed(root / place / "__init__.pyi").items():
            absolute = _absolute(package, module)
            if (absolute, name) not in seen:
                seen[absolute, name] = package
                names.append(name)
        _write(folder / f"{package}.md", _page(package, title, purpose, sorted(names, key=str.lower)))
    for module, (title, purpose, names) in ALSO.items():
        _write(folder / f"{module}.md", _page(module, title, purpose, list(names)))
    modules = sorted({absolute for absolute, _ in seen} | set(ALSO))
    purpose = "Where the names are defined: the text of a module has rules, formulas and sources in one place."
    _write(folder / "modules.md", _page("", "Modules", purpose, modules))


def name_the_module(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Let the description of a class or function end with a link to its module, which has the rules."""
    if what in {"class", "exception", "function"} and (thing.__module__ or "").startswith("marketsched."):
        lines += ["", f"Defined in :mod:`{thing.__module__}`.", ""]


def show_ranges(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put the range in a signature beside the type of its parameter: ``runs : int, a whole number >= 1``."""
    if what not in {"class", "function", "method"}:
        return
    try:
        known = {name: legal_text(each.range) for name, each in parameters_of(thing).items()}
    except (TypeError, ValueError):  # it has no signature
        return
    for i, line in enumerate(lines):
        found = re.match(r"^(\w+(?:, \w+)*) : (?:int|float|str)\b", line)
        texts = {known.get(each, "") for each in found[1].split(", ")} if found else set()
        if len(texts) == 1 and texts != {""}:
            lines[i] = f"{line}, {texts.pop()}"


def legal_text(legal: Range[Any] | None) -> str:
    """Return how a refusal words a range; nothing for what any number or text is."""
    inside = legal.range if isinstance(legal, Maybe) else legal
    if inside is None or inside in (Whole(-LARGEST_WHOLE), Finite("(-inf, inf)")):
        return ""
    try:
        inside(object())
    except ValueError as error:
        return "" if str(error) == "a text" else str(error)
    return ""


def _absolute(package: str, module: str) -> str:
    level = len(module) - len(module.lstrip("."))
    base = package.split(".")
    return ".".join([*base[: len(base) - (level - 1)], module[level:]])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
