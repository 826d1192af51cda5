"""What a kind of results looks like: its name in words, its table and remarks, its figures.

A kind works on tables, summary and meta of a result alone, so that a result that was read from its
folder prints, draws and reports as the one that was just made. Kinds of this package are imported
when a result of theirs is first looked at; others register themselves with `register_kind`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group

    from marketsched.results.result import Result


class Kind:
    """A kind of results nothing is known of; the base of all others.

    Attributes
    ----------
    title : str
        What a folder of this kind holds, in words.
    table : str
        The table that `Result.to_frame` gives if none is named.
    compared : str
        What the rows of a summary with several rows are.
    by : tuple of str
        Columns that name these rows.
    """

    title: ClassVar[str] = "results"
    table: ClassVar[str] = "summary"
    compared: ClassVar[str] = "rows"
    by: ClassVar[tuple[str, ...]] = ()

    def name(self, result: Result) -> str:
        """Return the headline of a page."""
        return str(result.meta.get("scenario", result.meta.get("name", self.title)))

    def how_far(self, result: Result) -> str:
        """Say how far an interrupted result came, as in ``after 3 of 20 seeds``."""
        return "before the end"

    def view(self, result: Result) -> Group | None:
        """Return tables and remarks, ready to print with rich; None: there is nothing to say but the tables."""
        return None

    def figures(self, result: Result) -> dict[str, Figure]:
        """Return figures by the name of their file, without its ending; the main one is ``figure``."""
        return {}

    def summary_data(self, result: Result) -> Any:
        """Return what ``summary.json`` holds, not yet made plain."""
        return result.summary if isinstance(result.summary, Mapping) else result.records()

    def data(self, result: Result) -> dict[str, Any]:
        """Return what ``--json`` prints, not yet made plain."""
        if isinstance(result.summary, Mapping):
            return {**result.summary, "meta": result.meta}
        about = {"scenario": result.meta.get("scenario"), "complete": result.complete}
        return {**about, self.compared: result.records(), "meta": result.meta}

    def details(self, result: Result) -> Mapping[str, Any]:
        """Return what a report shows folded, by title: data frames, or mappings of figures."""
        runs = {"Every run": result.tables["runs"]} if "runs" in result.tables else {}
        return {"All figures": result.summary, **runs}

    def documents(self, result: Result) -> Mapping[str, str]:
        """Return the texts that a report shows, by title; the scenario first."""
        shown = [name for name in result.texts if name.endswith((".yaml", ".md", ".txt"))]
        return {name: result.texts[name] for name in sorted(shown, key=lambda name: (name != "scenario.yaml", name))}

    def found_in(self, folder: Path) -> dict[str, Any]:
        """Return what a folder tells beside its tables and texts: added to a summary of figures."""
        return {}


def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds that are known."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_KINDS)))


_BUILT_IN = {
    "market": "marketsched.results.market_kind",
    "audit": "marketsched.results.audit_kind",
    "conduct": "marketsched.results.conduct_kind",
    "learning": "marketsched.results.learning_kind",
    "hard": "marketsched.results.hard_kind",
    "experiment": "marketsched.papers.experiment_kind",
    "reproduced": "marketsched.papers.experiment_kind",
    "core-lies": "marketsched.cores.results.core_lies_kind",
    "sweep": "marketsched.results.sweep_kind",
    "mechanisms": "marketsched.results.mechanisms_kind",
    "loads": "marketsched.results.loads_kind",
    "cluster": "marketsched.cores.results.policies_kind",
    "policies": "marketsched.cores.results.policies_kind",
    "over": "marketsched.cores.results.policies_kind",
}  # module that registers it
_KINDS: dict[str, Kind] = {}


def register_kind(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Make a class the look of all results of one kind.

    Examples
    --------
    >>> from marketsched.results.result import Result
    >>> @register_kind("survey")
    ... class Survey(Kind):
    ...     title = "survey of owners"
    >>> kind_of("survey").name(Result("survey"))
    'survey of owners'
    """

    def register(kind: type[Kind]) -> type[Kind]:
        _KINDS[name] = kind()
        return kind

    return register


def kind_of(name: str) -> Kind:
    """Return the look of a kind; of one that is not known, the plain one."""
    if name not in _KINDS and name in _BUILT_IN:
        importlib.import_module(_BUILT_IN[name])
    return _KINDS.get(name) or Kind()
