"""Explain the jobs of a market that was run: from its tables, and from its scenario, which plays it again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.market_log import RowKind
from marketsched.agents.result import lost_runs
from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import parse_yaml
from marketsched.explanations.changes import Change, Changed, changes_of, played_changes
from marketsched.explanations.explanation import LARGEST, Explanation, Holders
from marketsched.explanations.payment import Payment, checked_payment
from marketsched.explanations.rules import Rule, rule_of
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.promises import Disclosure
from marketsched.results.overtaking import Waits
from marketsched.results.result import Result
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.promises import promise_of

HELD = ("before", "ahead", "passed")
AS_IT_WAS, SAME = "as it was", 1e-9


class Explainer:
    """Explains the jobs of one market.

    Parameters
    ----------
    result : Result
        Of kind ``market``, complete, on identical nodes, with its scenario.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.

    Raises
    ------
    InvalidParameterError
        If the result is of another kind.

    Examples
    --------
    >>> import marketsched
    >>> result = marketsched.run("stochastic-mix", seed=7, mechanism="easy-backfill")
    >>> found = Explainer(result).explain(str(result.jobs["name"][3]))
    >>> found.wait == sum(found.causes.values())
    True
    """

    def __init__(self, result: Result, data: str | PathLike[str] | None = None) -> None:
        if "pools" in result.tables:
            raise InvalidParameterError("a market on a cluster", legal="one on identical nodes: causes count nodes")
        if not result.complete or "scenario.yaml" not in result.texts:
            raise InvalidParameterError("an interrupted market, or one without its scenario", legal="a whole one")
        self.result, self._data = result, data
        self.scenario = Scenario.from_dict(parse_yaml(result.texts["scenario.yaml"], "scenario.yaml"))
        self.seed = int(result.meta["seed"])
        jobs = result.tables["jobs"]
        self.jobs = jobs[jobs["arrival"].notna()].reset_index(drop=True)
        self._changes: dict[str, list[Changed]] = {}
        self._menus: dict[str, object] = {}

    @cached_property
    def market(self) -> MarketAtHand:
        """The market, to be played again."""
        return MarketAtHand.of(self.scenario, self.seed, self._data)

    @cached_property
    def disclosure(self) -> Disclosure:
        """Whether all jobs reveal their durations, none, or some."""
        return self.market.setup.table.disclosure

    @cached_property
    def rule(self) -> Rule:
        """The words of its rule."""
        return rule_of(self.market.setup.mechanism, self.disclosure == "revealed")

    @cached_property
    def waits(self) -> Waits:
        """The waits of all jobs that arrived."""
        lost = _taken_back(self.result.tables["events"], self.jobs["name"])  # those in it arrived
        sizes = self.market.setup.capacity, int(self.result.outcome["rounds"])
        return Waits.of_jobs(self.jobs, lost, *sizes, self.rule.keeps)

    @cached_property
    def places(self) -> dict[str, int]:
        """The rows of jobs by name."""
        return {str(name): row for row, name in enumerate(self.jobs["name"])}

    def prepare(self, jobs: Iterable[str]) -> None:
        """Play the changes of several jobs, and find their menus, in one play of the market each."""
        new = [job for job in jobs if job not in self._menus]
        if not new:
            return
        asked = {job: [Change(AS_IT_WAS, self._job(job)), *self._asked(job)] for job in new}
        found, posted = played_changes(self.market, self.scenario, asked, self._data)
        self._changes |= found
        self._menus |= dict.fromkeys(new) | posted | self.market.menus_of(new)

    def _job(self, name: str) -> Job:
        return self.market.setup.jobs[self.market.place_of[name]]

    def _asked(self, name: str) -> list[Change]:
        job, setup = self._job(name), self.market.setup
        promised = promise_of(setup.mechanism, job.truth, self.disclosure)
        return changes_of(job, setup, self.scenario, promised, self.result.meta.get("round_seconds"))

    def changes(self, job: str) -> list[Changed] | None:
        """Return what changes of a job would have brought, or None if the market cannot be played again.

        So it is where owners do not all report truly, or the mechanism keeps state outside of itself: the job as it was
        then ends otherwise than in the tables.
        """
        self.prepare([job])
        was, *found = self._changes[job]
        row = self.jobs.iloc[self.places[job]]
        start = None if pd.isna(row["start"]) else int(row["start"])
        same = was.start == start and abs(was.payment - row["payment"]) <= SAME * (1 + abs(was.payment))
        return found if same else None

    def explain(self, job: str, changes: bool = True) -> Explanation:
        """Return why a job waited.

        Parameters
        ----------
        job : str
            Its name, or its number in the log.
        changes : bool
            Whether to play what would have changed it, and to check its payment.

        Raises
        ------
        UnknownNameError
            If no job of this name arrived.
        """
        job = self._named(job)
        place, waits, rule = self.places[job], self.waits, self.rule
        row = self.jobs.iloc[place]
        causes = {name: int(rounds[place]) for name, rounds in waits.causes._asdict().items()}
        names, owners = self.jobs["name"].array, self.jobs["owner"].array
        holders = {
            cause: Holders(
                found.size,
                tuple(
                    (str(names[i]), str(owners[i]), int(work)) for i, work in zip(found[:LARGEST], held, strict=False)
                ),
            )
            for cause, (found, held) in zip(HELD, waits.holders(place), strict=True)
            if causes[cause]
        }
        kept = waits.kept_for(place) if causes["kept"] else None
        truth = self.market.setup.jobs[self.market.place_of[job]].truth
        start, end = (None if pd.isna(row[name]) else int(row[name]) for name in ("start", "completion"))
        end = None if end is None and pd.isna(row["removed"]) else int(row["removed"]) if end is None else end
        moments = int(row["arrival"]), start, end
        worth = float(row["value"]), float(truth.value.highest), float(row["payment"])
        wait = int(waits.left[place] - waits.arrivals[place])
        found, checked = (self.changes(job), self._payment(job, row)) if changes else ([], None)
        return Explanation(
            job, str(row["owner"]), int(waits.nodes[place]), *moments, str(row["outcome"]), *worth, wait, causes,
            holders, "" if kept is None else str(names[kept]), rule, self.scenario.mechanism.name,
            self.result.meta.get("round_seconds"), int(row["runs"]), found, checked, self._purse(job, row),
            self._taken_back(job), str(row.get("log_id") or ""),
        )  # fmt: skip

    def _named(self, job: str) -> str:
        """Return the name of a job by its name, or by its number in the log."""
        if job in self.places:
            return job
        of_log = self.jobs["log_id"].astype(str) if "log_id" in self.jobs else pd.Series("", index=self.jobs.index)
        names = self.jobs["name"][of_log == job].astype(str).tolist()
        if len(names) == 1:
            return names[0]
        few = zip(self.jobs["name"][:2], of_log[:2], strict=True)  # several: users were drawn again
        names = names[:9] or [f"{name} ({number} in the log)" if number else name for name, number in few]
        legal = f"a job that arrived with seed {self.seed}, as {', '.join(names)}"
        raise UnknownNameError(place="job", value=job, legal=legal)

    def _taken_back(self, job: str) -> list[tuple[int, list[str]]]:
        """Return when runs of a job were taken back, and jobs that started then."""
        events = self.result.tables["events"]
        began = events[(events["event"] == "start") & (events["job"] != job)]
        ends = events[(events["job"] == job) & events["event"].isin(["requeue", "evict"])]["round"]
        return [(int(now), began["job"][began["round"] == now][:LARGEST].astype(str).tolist()) for now in ends]

    def _purse(self, job: str, row: pd.Series[Any]) -> str:
        """Say what a purse says of a job: when it became regular, or what it costs and its owner has."""
        tables = self.result.tables
        if "purses" not in tables or "upgrades" not in tables:
            return ""
        upgraded = tables["upgrades"][tables["upgrades"]["job"].astype(str) == job]
        if len(upgraded):
            last = upgraded.iloc[-1]
            return (
                f"regular since round {last['round']:,}: cost {last['cost']:,.1f}, purse {last['purse']:,.1f} credits"
            )
        (own,) = tables["purses"][tables["purses"]["owner"] == row["owner"]].to_dict("records")
        cost = int(row["declared_concurrency"]) * int(row["duration"])
        purse = f"its owner's purse holds {own['held']:,.1f} of at most {own['caps']:,.1f} credits at the end"
        return f"never regular, on free nodes alone: its run costs {cost:,} credits, and {purse}"

    def _payment(self, job: str, row: pd.Series[Any]) -> Payment:
        nodes = int(self.waits.nodes[self.places[job]])
        return checked_payment(row, nodes, self._menus[job], self.result.tables, self.market.setup.mechanism)


def _taken_back(events: pd.DataFrame, names: pd.Series) -> NDArray[np.int64]:
    """Return row in ``names``, first round and first round without it of each run that was taken back."""
    events = events[events["event"].isin(["start", "requeue", "evict"])]
    kinds = {"start": RowKind.START, "requeue": RowKind.REQUEUE, "evict": RowKind.EVICT}
    columns = {
        "kind": events["event"].map(kinds).to_numpy(np.int64),
        "job": pd.Index(names).get_indexer(events["job"]),
        "round": events["round"].to_numpy(),
    }
    runs, taken_back = lost_runs(columns)
    return runs[taken_back]
