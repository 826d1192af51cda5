"""Sweeps: many independent seeded runs, here or on a cluster; an interrupted sweep goes on where it stopped.

A finished run is kept at once, under a hash of its resolved scenario, the code and its seed. Starting the same sweep
again continues where it ended; the table is made of the records when all are there, so it does not tell how often,
where or in which order the runs were made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from marketsched.mechanisms.legal import Whole, legal
from marketsched.mechanisms.signatures import renamed
from marketsched.play.dask_workers import connected
from marketsched.play.kept_results import fingerprint
from marketsched.play.parallel import TimeLeft
from marketsched.play.workers import Processes, Workers, cores
from marketsched.results.result import Result, load
from marketsched.study.sweeps.folder import TABLE, SweepFolder, check_sweep_target, open_folder, without_figures
from marketsched.study.sweeps.records import FAILED, SweepTask, arrow_table, killed, perform, sweep_rows
from marketsched.study.sweeps.runs import SweepRun, SweepSpec, read_spec, runs_from, runs_of
from marketsched.worlds.traces import data_folder

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], None]  # runs finished, runs in all, what there is to say


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep ended; if it was interrupted, it is not ``complete``, and the table holds the finished runs.

    Examples
    --------
    See `sweep`, which returns one.
    """

    out: Path
    runs: int  # different ones
    finished: int
    made: int  # this time
    failed: Mapping[str, str]  # errors, by the keys of the runs
    complete: bool
    seconds: float

    @property
    def table(self) -> pd.DataFrame:
        """The table, as it stands in the folder; see `marketsched.study.sweeps.records`."""
        import pandas as pd

        return pd.read_parquet(self.out / TABLE) if self.finished else pd.DataFrame()

    @property
    def result(self) -> Result:
        """The sweep as `marketsched.load` gives it: tables, figure, printed view."""
        return load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the errors as plain data."""
        return {**asdict(self), "out": str(self.out)}


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
    check_sweep_target(Path(out))
    if data is not None and scheduler is None and not Path(data).exists():
        data_folder(data)  # says what is wrong; on a cluster it is the workers that have to see it
    with ExitStack() as stack:
        cluster = None if scheduler is None else stack.enter_context(connected(scheduler))
        work = _Work(stack.enter_context(open_folder(Path(out))), listed, name or title, progress)
        tasks = work.open_tasks(retry_failed, data)
        work.begin()
        interrupted = False
        try:
            if tasks:
                work.make(_stream(tasks, workers, cluster), "starting" if cluster is None else cluster.state)
        except KeyboardInterrupt:
            interrupted = True
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
    tasks: Sequence[SweepTask], workers: int | None, cluster: Workers | None
) -> Generator[tuple[SweepTask, str], None, None]:
    """Give each task with its record; never made in this process, so that one that is killed ends no other."""
    if cluster is not None:
        yield from cluster.run(perform, tasks, killed)
        return
    with Processes(min(workers or cores(), len(tasks)), perform) as processes:
        yield from processes.run(perform, tasks, killed)


class _Work:
    """One sweep in its folder, from the records there are to the table."""

    def __init__(self, folder: SweepFolder, runs: Sequence[SweepRun], title: str, progress: Progress | None) -> None:
        self.folder, self.runs, self.title = folder, runs, title
        self.unique = {run.key: run for run in runs}  # two cases may come to the same
        self.states = folder.finished(self.unique)
        self._progress = progress
        self._made = self._bad = 0

    def open_tasks(self, retry_failed: bool, data: str | PathLike[str] | None) -> list[SweepTask]:
        """Return a task for every run that is to be made."""
        if retry_failed:
            self.states = {key: state for key, state in self.states.items() if state["status"] != FAILED}
        asked = None if data is None else str(Path(data).absolute())
        missing = {key: run for key, run in self.unique.items() if key not in self.states}
        return [SweepTask(key, run.case.text, run.seed, run.optimum, asked) for key, run in missing.items()]

    def begin(self) -> None:
        """Mark the folder as that of a sweep that is not finished: table and manifest change one by one."""
        self._bad = len(self._failed())
        self.folder.mark("runs are missing: start the sweep again to go on")
        self.folder.manifest(self._about())

    def make(self, stream: Generator[tuple[SweepTask, str], None, None], words: str) -> None:
        """Keep every record as it comes; ``words``: what there is to say before the first."""
        left = TimeLeft()
        self._tell(words)
        with closing(stream):
            for task, text in stream:
                self.folder.keep(task.key, text)
                self.states[task.key] = without_figures(json.loads(text))
                self._made += 1
                self._bad += self.states[task.key]["status"] == FAILED
                self._tell(left.words(self._made, self._made + len(self.unique) - len(self.states)))

    def end(self, begin: float, interrupted: bool) -> SweepResult:
        """Write table and manifest; say how it ended."""
        import pyarrow.parquet as pq

        if interrupted:  # a record may be kept and not counted, and failed runs not made again
            self.states = self.folder.finished(self.unique)
        complete = not interrupted and len(self.states) == len(self.unique)
        if self.states:
            about = {"sweep": self.title, "versions": dict(fingerprint())}
            table = arrow_table(sweep_rows(self.runs, self.folder.record), about)
            self.folder.write(self.folder.path / TABLE, lambda path: pq.write_table(table, path, compression="zstd"))
        self.folder.manifest({**self._about(), **self._outcome(complete)})
        still = f"{len(self.states)} of {len(self.unique)} runs are finished; start the sweep again to go on"
        self.folder.mark(None if complete else still)
        seconds, finished = round(time.perf_counter() - begin, 3), len(self.states)
        return SweepResult(self.folder.path, len(self.unique), finished, self._made, self._failed(), complete, seconds)

    def _failed(self) -> dict[str, str]:
        states = ((key, self.states[key]) for key in self.unique if key in self.states)
        return {key: state["error"] or "" for key, state in states if state["status"] == FAILED}

    def _tell(self, what: str) -> None:
        if self._progress is not None:
            self._progress(len(self.states), len(self.unique), what + (f", {self._bad} failed" if self._bad else ""))

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
        made = []
        for key, run in self.unique.items():
            if key in self.states:
                state = {name: value for name, value in self.states[key].items() if value is not None}
                made.append({"run": key, "case": run.case.number, "seed": run.seed, **state})
        failed = len(self._failed())
        return {"complete": complete, "done": len(made) - failed, "failed": failed, "durations": made}
