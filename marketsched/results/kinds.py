"""The display of a kind of results: its name in words, its table and remarks, its figures.

A kind works on tables, summary and meta of a result alone, so that a result that was read from its folder prints,
draws and reports as the one that was just made. A kind is imported when one of its results is first shown; others are
registered with ``marketsched.register("result", name)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from marketsched.mechanisms.registry import get, names
from marketsched.results.html import notebook_html
from marketsched.results.result import Result
from marketsched.results.views import ShownTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


class ResultKind:
    """A kind of results nothing is known of; the base of all others.

    Attributes
    ----------
    title : str
        The content of a folder of this kind, in words.
    table : str
        The table that `Result.to_frame` gives if none is named.
    compared : str
        The meaning of rows in a summary with several rows.
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

    def notebook(self, result: Result) -> str:
        """Return the display in a notebook: a piece of HTML."""
        return notebook_html(result, drawn=bool(self.figures(result)))

    def summary_data(self, result: Result) -> Any:
        """Return what ``summary.json`` holds, not yet made plain."""
        return result.records() if result.compares else result.outcome

    def data(self, result: Result) -> dict[str, Any]:
        """Return what ``--json`` prints, not yet made plain."""
        if not result.compares:
            return {**result.outcome, "meta": result.meta}
        about = {"scenario": result.meta.get("scenario"), "complete": result.complete}
        return {**about, self.compared: result.records(), "meta": result.meta}

    def details(self, result: Result) -> Mapping[str, Any]:
        """Return the folded tables of a report, by title: data frames, or mappings of figures."""
        runs = {"Every run": result.tables["runs"]} if "runs" in result.tables else {}
        return {"All figures": result.summary if result.compares else result.outcome, **runs}

    def documents(self, result: Result) -> Mapping[str, str]:
        """Return the texts that a report shows, by title; the scenario first."""
        shown = [name for name in result.texts if name.endswith((".yaml", ".md", ".txt"))]
        return {name: result.texts[name] for name in sorted(shown, key=lambda name: (name != "scenario.yaml", name))}

    def found_in(self, folder: Path) -> dict[str, Any]:
        """Return further contents of a folder beside its tables and texts: added to a summary of figures."""
        return {}

    def chapters(self, result: Result, folder: Path) -> Chapters | None:
        """Return the results that lie in folders inside ``folder``; None: there are none."""
        return None


@dataclass(frozen=True, slots=True)
class Chapters:
    """The display of a folder that holds other results: tables of all, and each as a chapter.

    Attributes
    ----------
    head : str
        Their description, in a line.
    tables : sequence of Shown
        Of all of them.
    notes : sequence of str
        Remarks on all of them.
    parts : sequence of (str, str, Result)
        Title, folder inside the folder, and the result there.
    """

    head: str
    tables: Sequence[ShownTable]
    notes: Sequence[str]
    parts: Sequence[tuple[str, str, Result]]


def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds that are known."""
    return names("result")


def kind_of(name: str) -> ResultKind:
    """Return the look of a kind; of one that is not known, the plain one.

    Examples
    --------
    >>> from marketsched.mechanisms.registry import register
    >>> from marketsched.results.result import Result
    >>> @register("result", "survey")
    ... class Survey(ResultKind):
    ...     title = "survey of owners"
    >>> kind_of("survey").name(Result("survey"))
    'survey of owners'
    """
    kind: type[ResultKind] = get("result", name if name in names("result") else "results")
    return kind()
