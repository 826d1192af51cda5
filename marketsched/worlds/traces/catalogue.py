"""The table of known traces: what each file is, where it comes from, and how to read and verify it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.errors import UnknownNameError
from marketsched.mechanisms.registry import get, names, register
from marketsched.worlds.traces.folder import Source, locate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded file.

    ``files`` are the names it goes by, the usual one first (others: as it was published).
    ``module`` and ``reader`` name the function that reads it, which is imported on use (listing
    traces needs no pandas); ``streamer`` the one that reads a large file in blocks.
    """

    name: str
    title: str
    files: tuple[str, ...]
    licence: str
    source: str
    module: str
    reader: str | Callable[..., pd.DataFrame]
    streamer: str | None = None

    def __call__(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table, as `read`."""
        return self.read(source)

    @property
    def file(self) -> str:
        """The usual name of the file."""
        return self.files[0]

    def path(self, source: Source = None) -> Path:
        """Return where the file is, or raise ``MissingDataError`` saying how to name its folder."""
        return locate(source, *self.files)

    def read(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table; see the reader for its columns and errors."""
        table: pd.DataFrame = self._function(self.reader)(source)
        return table

    def stream(self, source: Source = None, rows: int = 100_000) -> Iterator[pd.DataFrame]:
        """Yield the table in blocks of at most ``rows`` rows; small files come as one block."""
        if self.streamer is None:
            yield self.read(source)
        else:
            yield from self._function(self.streamer)(source, rows)

    @property
    def columns(self) -> str:
        """What the columns are: the reader's own documentation."""
        return str((self.reader if callable(self.reader) else self._function(self.reader)).__doc__)

    def _function(self, name: str | Callable[..., Any]) -> Callable[..., Any]:
        if callable(name):
            return lambda source: name(self.path(source))
        function: Callable[..., Any] = getattr(import_module(f"marketsched.worlds.traces.{self.module}"), name)
        return function


_GOOGLE = "Google cluster data 2011-2 (J. Wilkes, C. Reiss); names replaced by numbers"
_OPENB = "Alibaba cluster-trace-gpu-v2023, openb; Weng et al., USENIX ATC 2023"
_ARCHIVE = "Parallel Workloads Archive, D. Feitelson, Hebrew University; with thanks to"

TRACES: dict[str, Trace] = {
    trace.name: trace
    for trace in (
        Trace(
            "google-jobs",
            "every job of one Google cell in 29 days, with user and recurring-job name",
            ("google2011_jobs_29d.csv.gz",),
            "CC BY 4.0",
            _GOOGLE,
            "google",
            "read_jobs",
            "stream_jobs",
        ),
        Trace(
            "google-demand",
            "jobs of the first 19.3 h with task count, CPU, memory, priority",
            ("google2011_jobs_demand_19h.csv",),
            "CC BY 4.0",
            _GOOGLE,
            "google",
            "read_demand",
        ),
        Trace(
            "google-tasks",
            "each start of a task on a machine within 3 h, its run time and how it ended",
            ("google2011_task_runs_3h.csv.gz",),
            "CC BY 4.0",
            _GOOGLE,
            "google",
            "read_tasks",
            "stream_tasks",
        ),
        Trace(
            "openb-pods",
            "Alibaba GPU cluster: pods with CPU, memory, GPU, QoS, times",
            ("openb2023_pods.csv", "openb_pod_list_default.csv"),
            "Apache-2.0",
            _OPENB,
            "openb",
            "read_pods",
        ),
        Trace(
            "openb-nodes",
            "Alibaba GPU cluster: machines",
            ("openb2023_nodes.csv", "openb_node_list_all_node.csv"),
            "Apache-2.0",
            _OPENB,
            "openb",
            "read_nodes",
        ),
        Trace(
            "pai-machines",
            "Alibaba PAI GPU cluster 2020: machines",
            ("pai2020_machines.csv",),
            "CC BY 4.0",
            "Alibaba cluster-trace-gpu-v2020; Weng et al., NSDI 2022",
            "pai",
            "read_machines",
        ),
        Trace(
            "pai-minibatches",
            "Alibaba PAI: mini-batch time per worker and iteration, 4 training jobs",
            ("pai2020_minibatch_jobs.csv",),
            "CC BY 4.0",
            "Alibaba cluster-trace-gpu-v2020; Weng et al., NSDI 2022",
            "pai",
            "read_minibatches",
        ),
        Trace(
            "philly-jobs",
            "Microsoft Philly deep-learning jobs: time, duration, GPUs, virtual cluster",
            ("philly2017_jobs.csv.gz",),
            "CC BY 4.0",
            "Microsoft philly-traces, extract of ElasticFlow; Jeon et al., USENIX ATC 2019",
            "philly",
            "read_jobs",
            "stream_jobs",
        ),
        Trace(
            "nasa-ipsc",
            "NASA Ames iPSC/860 log with user and application number, 128 processors",
            ("nasa_ipsc_1993.swf.gz", "NASA-iPSC-1993-3.1-cln.swf.gz"),
            "free use, acknowledge",
            f"{_ARCHIVE} Bill Nitzberg",
            "swf",
            "read_nasa",
        ),
        Trace(
            "hpc2n",
            "HPC2N (Seth) log with waits and requested run times, first 3,170 jobs, 240 processors",
            ("hpc2n_2002_excerpt.swf",),
            "free use, acknowledge",
            f"{_ARCHIVE} Ake Sandgren",
            "swf",
            "read_hpc2n",
        ),
        Trace(
            "lanl-outages",
            "node outages of 23 systems of Los Alamos National Laboratory, 1996 to 2005",
            ("lanl_outages_1996_2005.csv.gz",),
            "public release, recognise LANL",
            "Los Alamos National Laboratory, LA-UR-05-7318, which we recognise for providing these data",
            "lanl",
            "read_outages",
        ),
        Trace(
            "spot-nodes",
            "spot machines on Amazon joining and leaving two GPU fleets, about 11 h each",
            ("spot_nodes_aws.csv",),
            "MIT",
            "uclasystem/bamboo; Thorpe et al., NSDI 2023",
            "spot",
            "read_nodes",
        ),
    )
}


for _each in TRACES.values():
    register("trace", _each.name)(_each)


def get_trace(name: str) -> Trace:
    """Return a trace by name.

    Raises
    ------
    UnknownNameError
        If there is none of that name; the message lists those there are.
    """
    found = get("trace", name)
    if isinstance(found, Trace):
        return found
    title = (found.__doc__ or "a reader without a docstring").strip().splitlines()[0].rstrip(".")
    return Trace(name, title, (f"{name}.csv",), "not stated", "not stated", found.__module__, found)


def known_traces() -> list[Trace]:
    """Return the traces of the package, and those of users and plug-ins."""
    return [get_trace(name) for name in names("trace")]


def verify(name: str, source: Source = None) -> pd.DataFrame:
    """Compare a trace file with its published reference statistics.

    Parameters
    ----------
    name : str
        A key of :data:`TRACES`.
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        One row per statistic: ``quantity`` (text), ``expected`` (text, as printed in the
        reference), ``found`` (float64), ``ok`` (bool: equal to the printed digits).

    Raises
    ------
    UnknownNameError
        If there is no such trace.
    MissingDataError, TraceError
        If the file is not there, damaged or malformed.
    """
    trace = get_trace(name)
    import pandas as pd

    from marketsched.worlds.traces.reference import STATISTICS

    if name not in STATISTICS:
        raise UnknownNameError(f"trace {name!r} has no published statistics: expected one of {', '.join(STATISTICS)}")
    table = trace.read(source)
    rows = [(quantity, expected, float(found)) for quantity, expected, found in STATISTICS[name](table)]
    checked = pd.DataFrame(rows, columns=["quantity", "expected", "found"])
    checked["ok"] = [_same_digits(expected, found) for _, expected, found in rows]
    return checked


def _same_digits(printed: str, found: float) -> bool:
    """Return True if ``found``, rounded to the digits of ``printed``, is ``printed``."""
    expected = Decimal(printed)
    unit = 10.0 ** int(expected.as_tuple().exponent)
    return abs(found - float(expected)) <= unit / 2 * (1 + 1e-6)
