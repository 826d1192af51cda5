"""The result of every command: tables, a summary, and their provenance, in one type.

A result is saved as a folder: every table as Parquet, the summary as JSON, further texts as they
are, one figure or more, ``meta.json`` with its kind, and a file ``INCOMPLETE`` if it was interrupted.
Equal seeds give equal bytes of tables: columns of seconds are kept apart, in ``timings.json``.
"""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched import results
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get, names
from marketsched.results.output import (
    FILES,
    INCOMPLETE,
    META,
    plain,
    whole_folder,
    write_json,
    write_parts,
)
from marketsched.results.tables import Tables, parts_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Group

SUMMARY, TIMINGS = "summary", "timings.json"
SECONDS = "seconds"  # a column of this name is no part of a table's bytes
TEXTS = (".yaml", ".json", ".csv", ".md", ".txt")  # endings of further files that are read
# What of the manifest every table says of itself.
ABOUT = ("scenario", "experiment", "key", "learner", "seed", "seeds", "runs", "versions", "complete")

PACKAGES = (
    "marketsched",
    "numpy",
    "numba",
    "scipy",
    "pandas",
    "pyarrow",
    "Mesa",
    "pydantic",
)  # whose versions a result may depend on


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name.lower()] = version(name)
        except PackageNotFoundError:  # run from a source tree that was never installed
            found[name.lower()] = "unknown"
    return found


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a command. ``result.jobs`` is ``result.tables["jobs"]``, and so for every table.

    Attributes
    ----------
    kind : str
        What it is of: ``market``, ``cluster``, ``mechanisms``, ``loads``, ``policies``, ``over``, ``audit``,
        ``conduct``, ``learning``, ``hard``, ``sweep``, ``experiment``, ``reproduced``; see `marketsched.results.kinds`.
    tables : mapping of str to DataFrame
        By name; each becomes a file.
    summary : DataFrame
        One row for each thing that was compared, and one row for a single run, with dots between the levels of nested
        figures, as in ``bounds.dual``. ``records()`` gives the rows as dictionaries.
    outcome : mapping
        Figures of a single run by name, some of them nested; empty where several things were compared.
    meta : dict
        Provenance: ``scenario``, ``seed``, ``versions``, ``seconds``, and ``complete``, False if it was interrupted
        and holds only the finished part.
    texts : mapping of str to str
        Further files by their names, as ``scenario.yaml``, which runs again.
    kept : sequence of KeptResults
        What holds finished parts on the disk (`marketsched.play.kept_results`); saving a complete result removes it.

    Examples
    --------
    >>> import pandas as pd
    >>> found = Result("notes", {"runs": pd.DataFrame({"seed": [0, 1], "welfare": [3.0, 5.0]})}, outcome={"best": 5.0})
    >>> float(found.runs["welfare"].mean()), found.outcome["best"], found.summary.columns.tolist(), found.complete
    (4.0, 5.0, ['best'], True)
    """

    kind: str
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    summary: pd.DataFrame = None  # type: ignore[assignment]  # made from the outcome
    meta: dict[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    kept: Sequence[Any] = field(default=(), repr=False)
    outcome: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import pandas as pd

        if isinstance(self.summary, Mapping):  # of a plug-in: figures of a single run
            object.__setattr__(self, "outcome", self.summary)
        if self.outcome or not isinstance(self.summary, pd.DataFrame):
            row = dict(results.views.flat(self.outcome))
            object.__setattr__(self, "summary", pd.DataFrame([row] if row else []))

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return the table of that name."""
        tables: Mapping[str, pd.DataFrame] = self.__dict__.get("tables", {})
        if name in tables:
            return tables[name]
        raise AttributeError(f"a result of kind {self.__dict__.get('kind')!r} has no {name!r}: it has {[*tables]}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.tables})

    def __repr__(self) -> str:
        tables = self.tables if isinstance(self.tables, Tables) else Tables(self.tables)
        rows = [f"summary {len(self.summary):,}"] if self.compares else []
        sizes = ", ".join([*rows, *(f"{name} {tables.rows(name):,}" for name in tables)])
        figures = ""
        if "welfare" in self.outcome:
            from marketsched.results.views import at_least_percent  # rich

            share = self.outcome.get("share_of_best")
            of_best = "" if share is None else f", {at_least_percent(share)} of a bound on the best"
            figures = f"; welfare {self.outcome['welfare']:,.6g}{of_best}"
        return f"Result({self.kind}: {self._look.name(self)}; {sizes or 'no tables'}{figures})"

    def _repr_html_(self) -> str:
        page: str = self._look.notebook(self)
        return page

    @property
    def _look(self) -> Any:
        return _look_of(self.kind)

    @property
    def complete(self) -> bool:
        """False if it was interrupted: the existing parts were finished."""
        return bool(self.meta.get("complete", True))

    @property
    def how_far(self) -> str:
        """How far an interrupted result came, as in ``after 3 of 20 seeds``; empty if it is complete."""
        return "" if self.complete else self._look.how_far(self)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of the summary, one dictionary each; of a single run the outcome, nested as it is.

        Examples
        --------
        >>> Result("notes", outcome={"welfare": 4.0}).records()
        [{'welfare': 4.0}]
        """
        if self.outcome:
            return [dict(self.outcome)]
        return [{str(key): value for key, value in row.items()} for row in self.summary.to_dict(orient="records")]

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Return a table as a data frame.

        Parameters
        ----------
        name : str, optional
            Of a table, or ``summary``; None: the main one, which is the summary where several things were compared.

        Raises
        ------
        InvalidParameterError
            If there is none of that name.
        """
        if name == SUMMARY:
            return self.summary
        tables = self._all_tables()
        chosen = name or (self._look.table if self._look.table in tables else next(iter(tables), ""))
        if chosen not in tables:
            raise InvalidParameterError(f"table {chosen!r}: expected one of {', '.join(tables) or '(there are none)'}")
        return tables[chosen]

    def _all_tables(self) -> Mapping[str, pd.DataFrame]:
        return dict(self.tables) | {SUMMARY: self.summary} if self.compares else self.tables

    @property
    def compares(self) -> bool:
        """True if the summary has rows of things that were compared, False for a single run."""
        return not self.outcome and len(self.summary.columns) > 0

    def to_dict(self) -> dict[str, Any]:
        """Return summary and meta as plain data, NaN and infinities as None."""
        found: dict[str, Any] = plain(self._look.data(self))
        return found

    def explain(self, job: str, **asked: Any) -> Any:
        """Return why a job waited, as `marketsched.explanations.explanation.Explanation`; printed, it reads as text.

        Parameters
        ----------
        job : str
            Its name in the table ``jobs``.
        **asked
            As of `marketsched.explanations.explaining.Explainer.explain`.

        Raises
        ------
        InvalidParameterError
            If the result is not of one market that was run to its end on identical nodes, or has no such job.
        """
        return self._explainer.explain(job, **asked)

    @cached_property
    def _explainer(self) -> Any:
        if self.kind not in names("explanation"):
            raise InvalidParameterError(place="explain", value=self.kind, legal="a market that was run")
        return get("explanation", self.kind)(self)

    def plot(self, name: str | None = None) -> Figure:
        """Return a figure; a notebook draws it, :func:`marketsched.results.panels.save_figure` writes it.

        Parameters
        ----------
        name : str, optional
            As of its file in a folder of results: ``owners``, ``schedules``, ... None: the main one.

        Raises
        ------
        InvalidParameterError
            If there is none, or none of this name.
        """
        figures = self._look.figures(self)
        if not figures:
            raise InvalidParameterError(f"a result of kind {self.kind!r} has no figure: expected one that has")
        if name is not None and name not in figures:
            raise InvalidParameterError(place="name", value=name, legal=f"one of {', '.join(figures)}")
        return results.panels.shown(figures[name or ("figure" if "figure" in figures else next(iter(figures)))])

    def view(self) -> Group | None:
        """Return tables and remarks, as the command prints them with rich."""
        shown: Group | None = self._look.view(self)
        return shown

    def save(self, folder: str | PathLike[str], force: bool = False) -> None:
        """Write everything into ``folder``, whole or not at all.

        Parameters
        ----------
        folder : path
            Absent, empty, or (with ``force``) earlier results.
        force : bool
            Replace earlier results, whole. Only files that they list as theirs are removed.

        Raises
        ------
        InvalidParameterError
            If the folder may not be written.
        OSError
            If the disk does not take it; nothing is left then.
        """
        meta = {"kind": self.kind, **self.meta, "complete": self.complete}
        about = {name: meta[name] for name in ABOUT if name in meta}
        tables, looks = self._all_tables(), self._look
        timings: dict[str, Any] = {}
        with whole_folder(Path(folder), force=force) as partial:
            for name in tables:
                write_parts(_without_seconds(name, parts_of(tables, name), timings), partial / f"{name}.parquet", about)
            if timings:
                write_json(timings, partial / TIMINGS)
            write_json(looks.summary_data(self), partial / f"{SUMMARY}.json")
            for name, text in self.texts.items():
                (partial / name).write_text(text, encoding="utf-8")
            for name, figure in looks.figures(self).items():
                results.panels.save_figure(figure, partial / f"{name}.png")
            if not self.complete:
                text = f"interrupted {self.how_far}; what is here is finished\n"
                (partial / INCOMPLETE).write_text(text, encoding="utf-8")
            write_json(meta, partial / META)
        if self.complete:
            for each in self.kept:
                each.remove()


def _without_seconds(name: str, parts: Iterator[pd.DataFrame], timings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Pass the parts of a table on without their column of seconds, which goes to ``timings``."""
    for part in parts:
        if SECONDS in part:
            timings[name] = _timings(part)
        yield part.drop(columns=SECONDS, errors="ignore")


def _timings(table: pd.DataFrame) -> dict[str, Any]:
    return {"column": list(table.columns).index(SECONDS), "values": table[SECONDS].tolist()}


def load(folder: str | PathLike[str]) -> Result:
    """Return the result that a folder holds.

    Parameters
    ----------
    folder : path
        A folder written by a command, with ``--out`` or under ``runs``.

    Raises
    ------
    InvalidParameterError
        If no command wrote the folder, if the folder does not state the kind of its result (those of versions before
        0.2 do not), or if one of its files is missing or damaged.

    Examples
    --------
    >>> import tempfile
    >>> import marketsched
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = marketsched.run("stochastic-mix", seed=7).save(f"{folder}/run")
    ...     load(f"{folder}/run").kind
    'market'
    """
    path = Path(folder)
    meta = manifest(path)
    kind, files = str(meta.pop("kind")), meta.pop(FILES, None)
    names = sorted(each.name for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    for name in files or ():
        if name not in names:
            raise InvalidParameterError(f"{path} has no {name}: expected all files of a {_look_of(kind).title}")
    tables = {Path(name).stem: read_table(path / name) for name in names if name.endswith(".parquet")}
    timings = _read_json(path / TIMINGS) if TIMINGS in names else {}
    for name, seconds in timings.items():
        tables[name].insert(seconds["column"], SECONDS, seconds["values"])
    summary: Any = tables.pop(SUMMARY, None)
    outcome: Any = {}
    if summary is None:
        outcome = _read_json(path / f"{SUMMARY}.json") if f"{SUMMARY}.json" in names else {}
        if not isinstance(outcome, dict):
            raise InvalidParameterError(f"{path / f'{SUMMARY}.json'} is damaged: expected figures by name")
        outcome |= _look_of(kind).found_in(path)
    ours = {META, TIMINGS, f"{SUMMARY}.json"}
    texts = {name: read_text(path / name) for name in names if name.endswith(TEXTS) and name not in ours}
    return Result(kind, tables, summary, meta, texts, outcome=outcome)


def _look_of(kind: str) -> Any:
    """Return the `marketsched.results.kinds.ResultKind` of a result; the registry holds it, as kinds know results."""
    return get("result", kind if kind in names("result") else "results")()


def manifest(folder: Path) -> dict[str, Any]:
    """Return ``meta.json`` of a folder of results.

    Raises
    ------
    InvalidParameterError
        If there is none, or it does not name a version and a kind.
    """
    if not folder.is_dir():
        seen = "is not a folder" if folder.exists() else "is not there"
        raise InvalidParameterError(f"{folder} {seen}: expected a folder that marketsched wrote")
    if not (folder / META).is_file():
        inside = sorted(each.parent.name for each in folder.glob(f"*/{META}") if not each.parent.name.startswith("."))
        hint = f", such as {folder / inside[0]}" if inside else ""
        raise InvalidParameterError(f"{folder} holds no {META}: expected a folder that marketsched wrote{hint}")
    meta = _read_json(folder / META)
    versions = meta.get("versions") if isinstance(meta, dict) else None
    if not isinstance(versions, dict) or "marketsched" not in versions:
        raise InvalidParameterError(
            f"{folder / META} names no version of marketsched: expected a folder that marketsched wrote"
        )
    if not isinstance(meta.get("kind"), str):
        raise InvalidParameterError(
            f"{folder / META} does not say of which kind the results are (written by marketsched "
            f"{versions['marketsched']}): expected a folder of this version; run the command again"
        )
    if (folder / INCOMPLETE).is_file():
        meta["complete"] = False
    return dict(meta)


def read_text(path: Path) -> str:
    """Return a text file; raise ``InvalidParameterError`` if it is missing or not UTF-8."""
    try:
        return _bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidParameterError(f"{path} is damaged: expected UTF-8 text") from None


def _read_json(path: Path) -> Any:
    """Return what a JSON file says; raise ``InvalidParameterError`` if it is missing or damaged."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError):  # also a number of thousands of digits
        raise InvalidParameterError(f"{path} is damaged: expected JSON") from None


def read_table(path: Path) -> pd.DataFrame:
    """Return a Parquet table; raise ``InvalidParameterError`` if it is missing or damaged."""
    import pandas as pd

    content = io.BytesIO(_bytes(path))
    try:
        return pd.read_parquet(content)
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError):
        raise InvalidParameterError(f"{path} is damaged: expected a Parquet table") from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidParameterError(f"{path.parent} has no {path.name}: expected all files of the results") from None
