"""The market of `turns` as columns: what some owners report is put into their rows before the round of the birth.

For rules by which no report changes anything before its arrival (those that show turns, see `Mechanism.turn`), with
known durations, and for reports that are a value until a deadline: what an owner then reports is a value, a deadline
and nodes, and the mechanism plays the rounds between two turns at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.learning import Bids, ReportMenu
from marketsched.agents.lies import InflateConcurrency, ScaleValue, ShiftDeadline, Truthful
from marketsched.agents.market_log import played_log
from marketsched.agents.market_run import MOST_AHEAD
from marketsched.agents.result import RunResult, build_result
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.columns import NEVER, Ending, JobColumns, Outcomes
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

IN_COLUMNS = (Truthful, ScaleValue, ShiftDeadline, InflateConcurrency)  # change a value, a deadline, or nodes upwards
_PHASES = np.array([0, 0, 0, 1, 2])  # by `Ending`: of a round


class PlayedTurns:
    """A fresh market, which is used up, as its mechanism plays it from turn to turn.

    ``rows`` are the places, rising, of the jobs whose reports come from outside; ``columns`` are all jobs, as they
    truly are; ``mechanism``, ``round`` and ``running`` are as of `MarketRun`.
    """

    def __init__(self, setup: MarketSetup, rows: NDArray[np.int64], columns: JobColumns, limits: MarketLimits) -> None:
        self.mechanism, self.round = setup.mechanism, 0
        self._setup, self._rows, self._true, self._limits = setup, rows, columns, limits
        written = {name: getattr(columns, name).copy() for name in ("widths", "values", "lasts", "ends")}
        self._widths, self._values, self._lasts, self._ends = written.values()
        self._reported = replace(columns, **{name: each.view() for name, each in written.items()})
        ahead = None if setup.mechanism.slot_prices(1, 1) is None else min(setup.max_delay, MOST_AHEAD)
        self._outcomes = Outcomes.empty(columns.n, setup.horizon, ahead)
        self._left: list[int] = []  # rows that left in the rounds played last, in the order of the log

    @classmethod
    def of(cls, setup: MarketSetup, rows: Sequence[int], menu: ReportMenu | Bids) -> PlayedTurns | None:
        """Return the market of these owners; None: it is to be played by the loop."""
        table, mechanism = setup.table, setup.mechanism
        limits = getattr(mechanism, "limits", None)
        plain = type(mechanism).turn is not Mechanism.turn and isinstance(limits, MarketLimits)
        others = not setup.differ and type(setup.strategy) is Truthful and not setup.resubmit
        if not (plain and others and _in_columns(menu) and (table.births[1:] >= table.births[:-1]).all()):
            return None
        if any(type(table[row].truth.value) is not DeadlineValue for row in rows):
            return None
        columns = table.columns(setup.max_delay)
        if columns is None or not columns.revealed.all() or columns.largest[0] > setup.capacity:
            return None
        found = cls(setup, np.array(rows, np.int64), columns, limits)  # type: ignore[arg-type]
        return found if mechanism.play(found._reported, found._outcomes, 0) else None

    @property
    def running(self) -> bool:
        """Whether rounds are left."""
        return self.round < self._setup.horizon

    def report(self, row: int, job: Job, report: StatementOfWork) -> None:
        """Put what is reported of a job into its row, before the round of its birth.

        Raises InvalidReportError if the report is outside the announced limits.
        """
        self._limits.check_report(job.name, report, job.truth.birth)
        curve, step = report.value, self._true.begins[row]
        assert isinstance(curve, DeadlineValue)
        self._widths[row], self._ends[row] = report.concurrency, curve.last
        self._values[step], self._lasts[step] = curve.value, curve.deadline

    def play(self, until: int) -> None:
        """Play the rounds up to ``until``."""
        before, self.round = self.round, until
        self.mechanism.play(self._reported, self._outcomes, until)
        left = self._outcomes.left[self._rows]
        now = self._rows[(left > before) & (left <= until)]
        phase = _PHASES[self._outcomes.endings[now]]
        backwards = np.where(phase == 1, -now, now)  # evictions: the job submitted last first
        self._left = now[np.lexsort((backwards, phase, self._outcomes.left[now]))].tolist()
        if self._closes:
            there = self._rows[(self._true.births[self._rows] <= until) & (left == NEVER)]
            self._left += there[::-1].tolist()

    def over(self) -> Iterator[tuple[int, float, float, int | None]]:
        """Go through the jobs that left in the rounds played last: row, utility and payment in credits, and start."""
        found = self._outcomes
        for row in self._left:
            start, payment, value = int(found.starts[row]), float(found.payments[row]), 0.0
            if found.endings[row] == Ending.COMPLETED:
                completion = int(found.left[row]) + 1
                if completion < self._true.births[row] + self._setup.max_delay:
                    value = float(self._setup.jobs[row].truth.value(completion))
            yield row, value - payment, payment, start or None

    @property
    def _closes(self) -> bool:
        return self.round == self._setup.horizon == self.mechanism.horizon

    def result(self) -> RunResult:
        """Return the tables of all rounds that were played."""
        columns = replace(self._true, widths=self._reported.widths)  # values are true ones
        return build_result(
            played_log(columns, self._outcomes, self.round, closes=self._closes),
            self._setup.table,
            name=self._setup.name,
            capacity=self._setup.capacity,
            horizon=self._setup.horizon,
            statistics=self.mechanism.statistics(),
        )


def _in_columns(menu: ReportMenu | Bids) -> bool:
    """Tell whether every report of a menu is a value, a deadline and at least the nodes that the work needs."""
    strategies: Iterable[object] = () if isinstance(menu, Bids) else menu.strategies
    return all(
        type(each) in IN_COLUMNS and not (isinstance(each, InflateConcurrency) and each.k < 0) for each in strategies
    )
