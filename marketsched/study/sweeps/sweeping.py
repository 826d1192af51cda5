"""Sweeps: many independent seeded runs, here or on a cluster; an interrupted sweep goes on where it stopped.

A finished run is kept at once, under a hash of its resolved scenario, the code and its seed. Starting the same sweep
again continues where it ended; the table is made of the records when all are there, so it does not tell how often,
where or in which order the runs were made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from marketsched.mechanisms.errors import SweepError
from marketsched.mechanisms.legal import Whole, legal
from marketsched.mechanisms.signatures import renamed
from marketsched.play.dask_workers import connected, run_on_cluster
from marketsched.play.kept_results import fingerprint
from marketsched.play.parallel import TimeLeft
from marketsched.play.workers import cores, run_in_processes
from marketsched.results.result import Result, load
from marketsched.study.sweeps.folder import TABLE, Kept, SweepFolder, check_sweep_target, kept, open_folder
from marketsched.study.sweeps.records import FAILED, REFUSED, SweepTask, killed, perform
from marketsched.study.sweeps.runs import SweepRun, SweepSpec, read_spec, runs_from, runs_of
from marketsched.study.sweeps.table import arrow_table, sweep_rows
from marketsched.worlds.traces import data_folder

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], None]  # runs finished, runs in all, what there is to say


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep ended.

    ``runs``: how many different runs it has; ``made`` of them were made this time; ``failed``: the
    keys of those that ended with an error, and the errors. ``complete`` is False if it was
    interrupted: the table then holds the runs that were finished. ``result`` is the content of the folder.

    Examples
    --------
    See `sweep`, which returns one.
    """

    out: Path
    runs: int
    finished: int
    made: int
    failed: Mapping[str, str]
    complete: bool
    seconds: float

    @property
    def table(self) -> pd.DataFrame:
        """The table, as it stands in the folder; see `marketsched.study.sweeps.table`."""
        import pandas as pd

        return pd.read_parquet(self.out / TABLE) if self.finished else pd.DataFrame()

    @property
    def result(self) -> Result:
        """The sweep as `marketsched.load` gives it: tables, figure, printed view."""
        return load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the errors as plain data."""
        return {
            "out": str(self.out),
            "runs": self.runs,
            "finished": self.finished,
            "made": self.made,
            "failed": dict(self.failed),
            "complete": self.complete,
            "seconds": self.seconds,
        }


@renamed(jobs="workers")
@legal
def sweep(
    runs: SweepSpec | str | PathLike[str] | Mapping[str, Any] | Sequence[Any],
    out: str | PathLike[str],
    scheduler: str | None = None,
    *,
    workers: Annotated[int, Whole(1, 1024)] | None = None,
    retry_failed: bool = False,
    data: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
    name: str | None = None,
) -> SweepResult:
    """Make every run of a sweep that is not finished yet, and one table of all.

    Parameters
    ----------
    runs : SweepSpec, path, mapping or sequence
        A sweep, its file, its content, or runs written out as in `runs_from`.
    out : path
        Folder of the sweep: a new one, or that of the same or a similar sweep, whose finished runs count.
    scheduler : str, optional
        Address of a Dask scheduler, as in ``tcp://10.0.0.1:8786``; None: worker processes here.
    workers : int, optional
        Worker processes; None: one per processor. Not used with a scheduler.
    retry_failed : bool
        Make runs again that ended with an error.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``, on a cluster
        that of the worker.
    progress : function of (int, int, str), optional
        Called with the number of finished runs, the number of runs, and the expected time left.
    keep_interrupted : bool
        On Ctrl-C return the finished runs instead of raising ``KeyboardInterrupt``.
    name : str, optional
        What to call the sweep in its manifest; None: its own name.

    Returns
    -------
    SweepResult
        Counts, errors, and the table.

    Raises
    ------
    InvalidParameterError, UnknownNameError, MissingDataError
        If a run, the folder, or that of the traces is at fault: before anything is run.
    SweepError
        If the folder is in use or the disk full, or the cluster does not answer; finished runs are kept.

    Examples
    --------
    >>> import tempfile
    >>> grid = {"scenario": "stochastic-mix", "seeds": [0, 1], "grid": {"workload.capacity": [88, 100]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = sweep(grid, f"{folder}/capacities", workers=1)
    >>> done.runs, done.complete
    (4, True)
    """
    begin = time.perf_counter()
    listed, title = _listed(runs)
    folder_path = Path(out)
    check_sweep_target(folder_path)
    if data is not None and scheduler is None and not Path(data).exists():
        data_folder(data)  # says what is wrong; on a cluster it is the workers that have to see it
    with ExitStack() as stack:
        client = None
        if scheduler is not None:
            client = stack.enter_context(connected(scheduler))
        folder = stack.enter_context(open_folder(folder_path))
        work = _Work(folder, listed, name or title, progress)
        tasks = work.open_tasks(retry_failed, data)
        interrupted = False
        if tasks:
            work.begin()
            try:
                work.make(_stream(tasks, workers, client), _first_words(client))
            except KeyboardInterrupt:
                interrupted = True
                work.look_again()
        result = work.end(begin, interrupted)
        if interrupted and not keep_interrupted:
            raise KeyboardInterrupt
        return result


def _listed(runs: Any) -> tuple[list[SweepRun], str]:
    """Return the runs of whatever describes them, and what to call them."""
    if isinstance(runs, SweepSpec):
        return runs_of(runs), runs.name
    if isinstance(runs, Mapping):
        spec = SweepSpec.from_dict(runs)
        return runs_of(spec), spec.name
    if isinstance(runs, (str, PathLike)):
        spec, folder = read_spec(runs)
        return runs_of(spec, folder=folder, source=str(runs)), spec.name
    return runs_from(list(runs)), "sweep"


def _stream(
    tasks: Sequence[SweepTask], workers: int | None, client: Any
) -> Generator[tuple[SweepTask, str], None, None]:
    if client is not None:
        return run_on_cluster(perform, tasks, client, killed)
    return run_in_processes(perform, tasks, workers or cores(), killed)


def _first_words(client: Any) -> str:
    return "starting" if client is None or client.scheduler_info()["workers"] else "waiting for workers of the cluster"


class _Work:
    """One sweep in its folder, from the records there are to the table."""

    def __init__(self, folder: SweepFolder, runs: Sequence[SweepRun], title: str, progress: Progress | None) -> None:
        self.folder, self.runs, self.title = folder, runs, title
        self.unique = {run.key: run for run in runs}  # two cases may come to the same
        self.records = folder.finished(self.unique)
        self._retried: dict[str, Kept] = {}
        self._progress = progress
        self._made = self._failed = 0
        self._marked = False

    def open_tasks(self, retry_failed: bool, data: str | PathLike[str] | None) -> list[SweepTask]:
        """Return a task for every run that is to be made."""
        if retry_failed:
            self._retried = {key: each for key, each in self.records.items() if each.status == FAILED}
            self.records = {key: each for key, each in self.records.items() if key not in self._retried}
        asked = None if data is None else str(Path(data).absolute())
        here = os.environ.get("MARKETSCHED_DATA")
        code = dict(fingerprint())
        return [
            SweepTask(key, run.case.text, run.seed, run.optimum, asked, here, code)
            for key, run in self.unique.items()
            if key not in self.records
        ]

    def begin(self) -> None:
        """Mark the folder as that of a sweep that is not finished."""
        self._failed = sum(each.status == FAILED for each in self.records.values())
        self._mark("runs are missing: start the sweep again to go on")
        self.folder.manifest(self._about())

    def make(self, stream: Generator[tuple[SweepTask, str], None, None], words: str) -> None:
        """Keep every record as it comes; ``words``: what there is to say before the first."""
        left = TimeLeft()
        self._tell(words)
        with closing(stream) as each:
            for task, text in each:
                record = json.loads(text)
                if record["status"] == REFUSED:
                    raise SweepError(
                        f"a worker has {record['error']}: expected the same versions on every worker, and none "
                        "installed or edited while a sweep runs"
                    )
                self.folder.keep(task.key, text)
                self.records[task.key] = kept(record)
                self._made += 1
                self._failed += record["status"] == FAILED
                self._tell(left.words(self._made, self._made + len(self.unique) - len(self.records)))

    def look_again(self) -> None:
        """Find the record that an interruption may have left kept, but not counted, and failed runs not made again."""
        found = self.folder.finished(self.unique)
        self._made += sum(found[key] != self._retried.get(key) for key in found.keys() - self.records.keys())
        self.records = found

    def end(self, begin: float, interrupted: bool) -> SweepResult:
        """Write table and manifest; say how it ended."""
        import pyarrow.parquet as pq

        complete = not interrupted and len(self.records) == len(self.unique)
        if not self._marked:
            self._mark("the table is not written: start the sweep again")  # it and the manifest change one by one
        if self.records:
            about = {"sweep": self.title, "versions": dict(fingerprint())}
            table = arrow_table(sweep_rows(self.runs, self._record), about)
            self.folder.write(self.folder.path / TABLE, lambda path: pq.write_table(table, path, compression="zstd"))
        self.folder.manifest({**self._about(), **self._outcome(complete)})
        still = f"{len(self.records)} of {len(self.unique)} runs are finished; start the sweep again to go on"
        self.folder.mark(None if complete else still)
        failed = {key: each.error or "" for key, each in self._in_order() if each.status == FAILED}
        seconds = round(time.perf_counter() - begin, 3)
        return SweepResult(self.folder.path, len(self.unique), len(self.records), self._made, failed, complete, seconds)

    def _mark(self, text: str) -> None:
        self.folder.mark(text)
        self._marked = True

    def _record(self, key: str) -> dict[str, Any] | None:
        return self.folder.record(key) if key in self.records else None

    def _tell(self, what: str) -> None:
        if self._progress is not None:
            self._progress(
                len(self.records), len(self.unique), f"{what}{f', {self._failed} failed' if self._failed else ''}"
            )

    def _in_order(self) -> list[tuple[str, Kept]]:
        return [(key, self.records[key]) for key in self.unique if key in self.records]

    def _about(self) -> dict[str, Any]:
        """Return what is known before the first run: versions, seeds, scenarios."""
        cases = {run.case.number: run.case for run in self.runs}
        return {
            "name": self.title,
            "versions": dict(fingerprint()),
            "seeds": list(dict.fromkeys(run.seed for run in self.runs)),
            "runs": len(self.unique),
            "cases": [
                {"case": number, "labels": dict(case.labels), "scenario": case.scenario.to_dict()}
                for number, case in cases.items()
            ],
        }

    def _outcome(self, complete: bool) -> dict[str, Any]:
        """Return what became of the runs, with their durations."""
        records_kept = []
        for key, record in self._in_order():
            run = self.unique[key]
            error = {"error": record.error} if record.status == FAILED else {}
            about = {"run": key, "case": run.case.number, "seed": run.seed, "status": record.status}
            records_kept.append({**about, **error, "seconds": record.seconds})
        failed = sum(each["status"] == FAILED for each in records_kept)
        return {"complete": complete, "done": len(records_kept) - failed, "failed": failed, "durations": records_kept}
