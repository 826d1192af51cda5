"""Why jobs waited: each round of a wait has one cause, known from arrivals, starts, ends and nodes alone, for any rule.

A round belongs to the first of these that holds:

* *lost*: the job runs, and this run is taken back later;
* *before*: runs that began before it came leave no room;
* *ahead*: nor do these and the runs of other jobs that arrived earlier;
* *passed*: they leave room, and runs of later arrivals take it;
* *kept*: the job fits beside all runs, and the rule keeps the nodes for another (see `Waits`);
* *own*: it fits, nothing is kept, and its own limit (a price, a purse, a quota, patience) lets it wait.

The six add up to the wait, from the arrival to the last start, or until the job leaves. Jobs are in order of arrival:
what reorders them is why one passes another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.mechanism import Mechanism
from marketsched.results.waits import counted

HOUR_S = 3600.0
HOURS = ("median_wait_hours", "q90_wait_hours", "longest_wait_hours", "longest_overtaken_hours")
WIDE = 0.05  # share of the jobs
Keeps = Literal["nothing", "waiting", "booked"]
KEEPS = ("nothing", "waiting", "booked")
FEW = 2000  # stretches of waits that are gone through without compiled code
KEPT = 3  # the place of *kept* in `Causes`


class Causes(NamedTuple):
    """Rounds that each job waited, by cause; each of shape (n_jobs,)."""

    before: NDArray[np.int64]
    ahead: NDArray[np.int64]
    passed: NDArray[np.int64]
    kept: NDArray[np.int64]
    own: NDArray[np.int64]
    lost: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Waits:
    """The jobs of a market that arrived, and their runs.

    Parameters
    ----------
    arrivals : ndarray of int, shape (n_jobs,)
        Rounds; of equal ones the first job in the array came first.
    left : ndarray of int, shape (n_jobs,)
        The first round in which it no longer waited: its last start, or the round in which it left without one.
    nodes, durations : ndarray of int, shape (n_jobs,)
        Of each job; durations, in rounds, matter where nodes are booked.
    runs : ndarray of int, shape (n_runs, 3)
        Job, first round and first round without it of every run, also of those that were taken back.
    capacity : int
        Nodes.
    keeps : {"nothing", "waiting", "booked"}
        For whom the rule keeps idle nodes: for nobody; for a job that waits and does not fit; or for runs of earlier
        arrivals that begin before this job could end.

    Examples
    --------
    Two nodes. A takes one for four rounds; B, which wants both, comes in round 2, and C takes the other in round 3:

    >>> arrivals, left, nodes = np.array([[1, 2, 3], [1, 9, 3], [1, 2, 1]])
    >>> runs = np.array([[0, 1, 5], [1, 9, 10], [2, 3, 8]])
    >>> {name: int(rounds[1]) for name, rounds in Waits(arrivals, left, nodes, nodes, runs, 2).causes._asdict().items()}
    {'before': 3, 'ahead': 0, 'passed': 3, 'kept': 0, 'own': 1, 'lost': 0}
    """

    arrivals: NDArray[np.int64]
    left: NDArray[np.int64]
    nodes: NDArray[np.int64]
    durations: NDArray[np.int64]
    runs: NDArray[np.int64]
    capacity: int
    keeps: Keeps = "nothing"

    @classmethod
    def of_jobs(
        cls, jobs: pd.DataFrame, taken_back: NDArray[np.int64], capacity: int, last: int, keeps: Keeps = "nothing"
    ) -> Self:
        """Return those of a table ``jobs``, of whose jobs those that never arrived are left out.

        ``taken_back``, shape (n, 3), has row, first round and first round without it of each run that was taken back;
        ``last`` is the last round that was played.
        """
        came = jobs["arrival"].notna().to_numpy()
        row, jobs = np.cumsum(came) - 1, jobs[came]
        taken_back = np.column_stack([row[taken_back[:, 0]], taken_back[:, 1:]])
        arrivals, start = (jobs[name].fillna(0).to_numpy(np.int64) for name in ("arrival", "start"))
        end = jobs["completion"].fillna(jobs["removed"]).fillna(last + 1).to_numpy(np.int64)
        nodes = jobs["declared_concurrency"].fillna(jobs["concurrency"]).to_numpy(np.int64)
        ran = np.flatnonzero(start)
        runs = np.concatenate([np.column_stack([ran, start[ran], end[ran]]), taken_back])
        durations = jobs["duration"].to_numpy(np.int64) if "duration" in jobs else np.ones_like(nodes)
        return cls(arrivals, np.where(start > 0, start, end), nodes, durations, runs, capacity, keeps)

    @cached_property
    def causes(self) -> Causes:
        """Why each job waited."""
        return Causes(*self._found(-1)[0])

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The jobs in the order in which they came, shape (n_jobs,)."""
        return np.argsort(self.arrivals, kind="stable")

    @cached_property
    def _stretches(self) -> tuple[NDArray[np.int64], ...]:
        """Sorted runs; the times at which anything changes; and arrivals, ends of waits and runs as places in these."""
        runs = self.runs[np.lexsort((self.runs[:, 1], self.runs[:, 0]))]
        times = np.unique(np.concatenate([self.arrivals, self.left, runs[:, 1], runs[:, 2]]))
        places = (np.searchsorted(times, each) for each in (self.arrivals, self.left, runs[:, 1], runs[:, 2]))
        return runs, times, *places

    def _found(self, one: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        runs, times, since, until, begin, end = self._stretches
        busy = np.zeros(times.size, np.int64)
        np.add.at(busy, begin, self.nodes[runs[:, 0]])
        np.subtract.at(busy, end, self.nodes[runs[:, 0]])
        first = np.searchsorted(runs[:, 0], np.arange(self.arrivals.size + 1))
        jobs = self.order, since, until, self.nodes, self.durations, first
        of_runs = runs[:, 0], begin, end, np.argsort(begin, kind="stable")
        few = int((until - since).sum()) < FEW  # a live market waits for no compilation
        kernel: Any = getattr(_causes_kernel, "py_func", _causes_kernel) if few else _causes_kernel
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = kernel(
            jobs, of_runs, times, np.cumsum(busy), self.capacity, KEEPS.index(self.keeps), one
        )
        return found

    def holders(self, job: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return who held the nodes that a job waited for.

        Returns
        -------
        list of (ndarray, ndarray), shapes (n,)
            For *before*, *ahead* and *passed*: jobs, and their node-rounds in the rounds of that cause, the most first.
        """
        runs, times, since, _, begin, end = self._stretches
        label = self._found(job)[1]
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(rank.size)
        came_before = begin < since[job]
        earlier = rank[runs[:, 0]] < rank[job]
        found = []
        for cause, of_it in enumerate((came_before, ~came_before & earlier, ~earlier)):
            passed = np.concatenate([[0], np.cumsum(np.where(label[:-1] == cause, np.diff(times), 0))])
            held = np.where(of_it, self.nodes[runs[:, 0]] * (passed[end] - passed[begin]), 0)
            of_jobs = np.bincount(runs[:, 0], held, self.arrivals.size).astype(np.int64)
            jobs = np.flatnonzero(of_jobs)
            jobs = jobs[np.argsort(-of_jobs[jobs], kind="stable")]
            found.append((jobs, of_jobs[jobs]))
        return found

    def kept_for(self, job: int) -> int | None:
        """Return the first of the jobs that waited when idle nodes were first kept from a job; None: there is none."""
        runs, times, since, until, begin, end = self._stretches
        kept = np.flatnonzero(self._found(job)[1] == KEPT)
        if not kept.size:
            return None
        now = kept[0]
        on = (begin <= now) & (now < end)
        idle = self.capacity - self.nodes[runs[on, 0]].sum()
        waits = (
            (since <= now) & (now < until) & (self.nodes > idle if self.keeps == "waiting" else self.left > times[now])
        )
        waits[[job, *runs[on, 0]]] = False
        return next((int(i) for i in self.order if waits[i]), None)


@njit(cache=True)
def _causes_kernel(jobs, runs, times, busy, capacity, keeps, one):  # type: ignore[no-untyped-def]
    """Return rounds by cause and job, shape (6, n), and for job ``one`` the cause of each stretch between times."""
    (order, since, until, nodes, durations, first), (of, begin, end, by_begin) = jobs, runs
    found, label = np.zeros((6, nodes.size), np.int64), np.full(times.size, -1)
    earlier, widest = np.zeros(times.size, np.int64), np.zeros(times.size, np.int64)  # widest of those that wait
    if keeps == 1:
        for i in range(nodes.size):
            run, k = first[i], since[i]
            while k < until[i]:
                if run < first[i + 1] and begin[run] <= k:
                    k = end[run]
                    run += 1
                    continue
                widest[k] = max(widest[k], nodes[i])
                k += 1
    going, n_going, next_run = np.empty(of.size, np.int64), 0, 0  # runs that go on, those that end last first
    for i in order:
        while next_run < of.size and begin[by_begin[next_run]] < since[i]:
            run, q = by_begin[next_run], n_going
            while q > 0 and end[going[q - 1]] < end[run]:
                going[q] = going[q - 1]
                q -= 1
            going[q] = run
            n_going, next_run = n_going + 1, next_run + 1
        while n_going and end[going[n_going - 1]] <= since[i]:
            n_going -= 1
        left, held, freed = capacity - nodes[i], 0, since[i]
        for q in range(n_going):
            held += nodes[of[going[q]]]
            if held > left:
                freed = end[going[q]]
                break
        run, k = first[i], since[i]
        while k < until[i]:
            if run < first[i + 1] and begin[run] <= k:  # a run that was taken back
                for j in range(k, end[run]):
                    found[5, i] += times[j + 1] - times[j]
                    if i == one:
                        label[j] = 5
                k = end[run]
                run += 1
                continue
            cause = 0 if k < freed else 1 if earlier[k] > left else 2 if busy[k] > left else 4
            if cause == 4 and keeps == 1 and widest[k] > capacity - busy[k]:
                cause = 3
            j = k
            while cause == 4 and keeps == 2 and j < times.size and times[j] < times[k] + durations[i]:
                cause = 3 if earlier[j] > left else 4
                j += 1
            found[cause, i] += times[k + 1] - times[k]
            if i == one:
                label[k] = cause
            k += 1
        for run in range(first[i], first[i + 1]):
            earlier[begin[run] : end[run]] += nodes[i]
    return found, label


def keeps_of(mechanism: Mechanism, revealed: bool) -> Keeps:
    """Return for whom a rule keeps idle nodes, where durations are revealed at arrival or hidden.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> sizes = {"max_concurrency": 2, "max_duration": 5, "max_value": 9.0, "max_delay": 15, "capacity": 2}
    >>> [keeps_of(get_mechanism(name, horizon=20, **sizes), True) for name in ("easy-backfill", "bid-price", "vcg")]
    ['waiting', 'booked', 'nothing']
    """
    asked = getattr(mechanism, "inner", mechanism)
    kinds = {kind.__name__ for kind in type(asked).__mro__}
    if revealed and {"BidPrice", "FirstCome"} & kinds:  # they book calendars
        return "booked"
    strict = getattr(asked, "_order", "") == "strict"  # bid prices with hidden durations
    return "waiting" if strict or getattr(asked, "reserve", "none") not in ("none", 0) else "nothing"


def causes_table(
    jobs: pd.DataFrame, taken_back: NDArray[np.int64], capacity: int, last: int, round_seconds: float, keeps: Keeps
) -> pd.DataFrame:
    """Return hours of waiting by cause, of all jobs, by class and by width; arguments as of `Waits.of_jobs`.

    Returns
    -------
    DataFrame
        ``by`` (all, class, width), ``name``, ``jobs``, and a column for each of `Causes`, sums in hours.
    """
    every = Waits.of_jobs(jobs, taken_back, capacity, last, keeps)
    jobs = jobs[jobs["arrival"].notna()]
    own = counted(jobs)
    hours = pd.DataFrame(every.causes._asdict())[own] * (round_seconds / HOUR_S)
    wide = every.nodes >= np.sort(every.nodes)[-max(1, round(WIDE * every.nodes.size)) :][:1].sum()
    groups = {"all": np.full(len(jobs), "all"), "width": np.where(wide, "widest 5 %", "others")}
    groups |= {"class": jobs["class"].astype(str).to_numpy()} if "class" in jobs else {}
    parts = [
        hours.assign(jobs=1).groupby(names[own]).sum().rename_axis("name").reset_index().assign(by=by)
        for by, names in groups.items()
    ]
    return pd.concat(parts, ignore_index=True)[["by", "name", "jobs", *Causes._fields]]


def waits_figures(
    jobs: pd.DataFrame,
    taken_back: NDArray[np.int64],
    offered: NDArray[np.float64],
    capacity: int,
    last_round: int,
    round_seconds: float,
) -> dict[str, Any]:
    """Return the longest wait and the longest time overtaken of a market, hours, and what its widest jobs get.

    Jobs of a lead-in hold others up, and no wait of theirs is counted.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of the market.
    taken_back : ndarray of int, shape (n, 3)
        Row in ``jobs``, first round and first round without it of each run that was taken back.
    offered : ndarray, shape (n_jobs,)
        The largest value that each job can have, credits.
    capacity, last_round, round_seconds
        Of the market.

    Returns
    -------
    dict
        `HOURS`, jobs that left unserved included: the median, 90th percentile and longest of waits, and the longest
        time overtaken; ``wait_with_nodes_free``, the share of all waiting while enough nodes were idle;
        ``longest_wait_job`` and ``overtaken_job``;
        ``wide_share``, the part of their offered value that the widest 5 % of the jobs get, with all as wide as the
        narrowest of these.
    """
    every = Waits.of_jobs(jobs, taken_back, capacity, last_round)
    came = jobs["arrival"].notna().to_numpy()
    jobs, offered = jobs[came], offered[came]
    if not len(jobs):
        nobody = {"wait_with_nodes_free": np.nan, "longest_wait_job": "", "overtaken_job": "", "wide_share": np.nan}
        return {**dict.fromkeys(HOURS, 0.0), **nobody}
    causes, own = every.causes, np.flatnonzero(counted(jobs))
    hours, longest = round_seconds / HOUR_S, int(own[causes.passed[own].argmax()])
    wide = every.nodes >= np.sort(every.nodes)[-max(1, round(WIDE * every.nodes.size))]
    value = jobs["value"].to_numpy(np.float64)
    waits = np.sum(causes[:-1], axis=0)[own]
    median, tenth = np.quantile(waits, (0.5, 0.9))
    found = (median, tenth, waits.max(), causes.passed[longest])
    return {
        **{name: hours * float(each) for name, each in zip(HOURS, found, strict=True)},
        "wait_with_nodes_free": float(causes.own[own].sum() / waits.sum()) if waits.any() else np.nan,
        "longest_wait_job": str(jobs["name"].iloc[int(own[waits.argmax()])]),
        "overtaken_job": str(jobs["name"].iloc[longest]),
        "wide_share": float(value[wide].sum() / offered[wide].sum()) if offered[wide].any() else np.nan,
    }
