r"""Failure oracles: the probability that a job submitted now would not complete, :math:`f_\tau(s,c,d)`.

`exact_oracle` enumerates every joint outcome of the earlier jobs; it is for small markets and
for tests. :class:`MonteCarloOracle` (Appendix F of [BLLMSW22]_) counts failing sample paths. Both
follow the earlier active jobs through :class:`~marketsched.mechanisms.posted.residual.ResidualTracker`
and both use (6'): under LIFO over all active jobs a path needs only the load as if no job were
evicted from now on. Under the ``running`` variant jobs are placed in order of submission, each up to
and including the first round in which it does not fit: it is removed there, but a still later job,
counted in the same load, goes before it (Section 15.3, R_t taken before the removals of round t).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, TooLargeError
from marketsched.mechanisms.law import Law
from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.posted.draws import FRESH, REFRESH, SUBMIT, root_key, stamp_of
from marketsched.mechanisms.posted.residual import Eviction, ResidualJob, ResidualTracker
from marketsched.mechanisms.posted.sample_paths import MAX_POINTS, SamplePaths
from marketsched.mechanisms.randomness import Rng, generator_of

Refresh = Literal["submission", "round"] | float


class FailureOracle(ResidualTracker):
    """The interface of an oracle; subclasses fill :meth:`table`."""

    exact = False

    def failure_table(self, concurrency: int) -> NDArray[np.float64]:
        r"""Return :math:`\hat f(s, c, d)` for a job of so many nodes submitted now, shape (max_delay, max_duration).

        Row ``i`` is the start ``now + i``, column ``k`` the duration ``k + 1``. Not thresholded; launches that would
        run beyond the horizon have 1. Raises InvalidParameterError if ``concurrency`` is not in 1 .. max_concurrency,
        or the oracle serves no mechanism yet.
        """
        limits = self.limits
        concurrency = Whole(1, limits.max_concurrency).check("concurrency", concurrency)
        return self.table(concurrency, limits.max_delay, limits.max_duration)

    def table(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        """Return the upper left part of :meth:`failure_table`."""
        self.prepare()
        table = self._fractions(concurrency, n_starts, n_durations)
        beyond = self.limits.horizon - self.now + 1  # rounds left, the current one included
        if n_starts + n_durations - 1 > beyond:
            ends = np.add.outer(np.arange(n_starts), np.arange(1, n_durations + 1))
            table[ends > beyond] = 1.0
        return table

    def prepare(self) -> None:
        """Do what an estimate asks for before it: condition on what did not happen; draw what is due."""
        self._settle()

    def _fractions(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        raise NotImplementedError

    def at_rest(self) -> FailureOracle:
        """Return an oracle that answers `table` as this one would now, and leaves this one as it is.

        Where an estimate draws or settles something first, a copy does, which serves until the next event.
        """
        if self._settled and not self._draws_before_estimate():
            return self
        if self._rested is None:
            self._rested = self._copied()
        rested: FailureOracle = self._rested
        return rested

    def _draws_before_estimate(self) -> bool:
        """Tell whether the next estimate changes the paths that it is made from."""
        return False

    def check(self, law: Law) -> None:
        """Raise InvalidReportError if a report is too large to follow (hook)."""

    def probe(self, concurrency: int, law: Law, starts: NDArray[np.int64], table: NDArray[np.float64]) -> None:
        """Compare the estimates a plan was made with to fresh ones, now and then (hook)."""

    def statistics(self) -> dict[str, Any]:
        """Return the figures of the oracle for the run summary."""
        return {}

    def fresh_paths(self, samples: int, rng: Rng) -> SamplePaths:
        """Draw ``samples`` paths of the earlier jobs that no estimate has used, or will use.

        Raises TooLargeError if a law has more points than a drawn outcome can name.
        """
        rng = generator_of(rng)
        self._settle()
        paths = SamplePaths(samples, self.limits, root_key(rng), self.eviction)
        paths.now = self.now
        for residual in self._jobs.values():
            if residual.law.arrivals.size > MAX_POINTS:
                raise TooLargeError(
                    f"job {residual.job!r}: a law of {residual.law.arrivals.size} points: paths take {MAX_POINTS}"
                )
            paths.add(residual, stamp_of(self.now, FRESH))
        return paths

    def n_outcomes(self, at_most: float = np.inf) -> float:
        """Return the number of joint outcomes of earlier jobs, or any above ``at_most``; equal loads are not merged."""
        self._settle()
        count = 1.0
        for residual in self._jobs.values():
            count *= max(1, residual.high - residual.low + residual.may_never)
            if count > at_most:
                break
        return count


class MonteCarloOracle(FailureOracle):
    r"""Failure probabilities as the fraction of failing sample paths.

    Parameters
    ----------
    samples : int
        Number n of paths. :math:`n = \lceil \ln(2 S D_{max}/\eta) / (2\gamma^2) \rceil` makes every
        estimate of one query correct within gamma with probability 1 - eta (28), when the paths are
        fresh.
    refresh : {"submission", "round"} or float
        When paths are drawn afresh. ``"submission"``: before every estimate, the condition of (28)
        and (7). ``"round"``: once a round. A share ``p`` in [0, 1]: paths are kept, and a share
        ``p`` of them is drawn from scratch each round, in rotation. Kept paths make later estimates
        depend on earlier noise, towards the optimistic: with 32 paths in an overloaded market the
        mean over a table was off by -0.004 +- 0.002 kept, -0.002 +- 0.002 at 0.1, -0.001 +- 0.001
        for ``"round"`` and ``"submission"`` (``make bench``, rows ``refresh``); it falls as 1/n. The
        default, 0.1, lies between, at a few per cent of a run's time. See :meth:`statistics`.
    probe_every : int, optional
        Measure the bias of the estimates at every ``probe_every``-th submission against paths drawn for
        that question alone; see :meth:`statistics`. None: never.
    rng : numpy.random.Generator or int, optional
        Source of the root key; by default the mechanism's.

    Raises
    ------
    InvalidParameterError
        If ``samples`` is not a whole number in [1, 10_000_000] or ``refresh`` is none of the above.

    Notes
    -----
    The same paths serve all (s, c, d), so estimates are non-decreasing in c and d. Draws depend on
    the order of submission, the round and the path alone, never on a report.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, PostedPriceMechanism, PostedPricing, StatementOfWork
    >>> sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 9.0, "max_delay": 3}
    >>> oracle = MonteCarloOracle(samples=200, refresh="submission", rng=7)
    >>> market = PostedPriceMechanism(1, 6, PostedPricing([2.0]), oracle, epsilon=-0.5, **sizes)
    >>> market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 1.0)])).estimated_utility
    2.0
    """

    @legal
    def __init__(
        self,
        samples: Annotated[int, Whole(1, 10_000_000)] = 1000,
        refresh: Refresh = 0.1,
        *,
        probe_every: Count | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__()
        self.samples = samples
        self.probe_every = probe_every
        legal_share = isinstance(refresh, (int, float)) and not isinstance(refresh, bool) and 0 <= refresh <= 1
        if refresh not in ("submission", "round") and not legal_share:
            raise InvalidParameterError(
                place="refresh", value=refresh, legal="'submission', 'round', or a share of the paths in [0, 1]"
            )
        self.refresh: Refresh = refresh
        self._own_rng = None if rng is None else generator_of(rng)
        self._share = 1.0 if refresh == "round" else 0.0 if refresh == "submission" else float(refresh)
        self._owed = 0.0  # blocks still to be drawn afresh
        self._next_block = 0
        self._stale = False
        self._version = 0
        self._submissions = 0
        self._differences: list[tuple[float, float]] = []  # estimate - fresh one: planned launches, whole table

    def attach(self, limits: MarketLimits, rng: np.random.Generator, eviction: Eviction = "all") -> None:
        """Serve one mechanism, which evicts by the rule ``eviction``; called by it."""
        super().attach(limits, rng, eviction)
        source = rng if self._own_rng is None else self._own_rng
        self._paths = SamplePaths(self.samples, limits, root_key(source), eviction)
        self._probe_root = root_key(source)

    def check(self, law: Law) -> None:
        """Raise InvalidReportError if a law has more points than a drawn outcome can name."""
        if law.arrivals.size > MAX_POINTS:
            raise InvalidReportError(f"requirements: {law.arrivals.size} points: expected at most {MAX_POINTS}")

    def prepare(self) -> None:
        """Do what an estimate asks for before it: condition on what did not happen; draw what is due."""
        super().prepare()
        self._draw_afresh()

    def _fractions(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        return self._paths.counts(concurrency, n_starts, n_durations) / self.samples

    def _draws_before_estimate(self) -> bool:
        return self._stale if self.refresh == "submission" else self._owed >= 1

    def _on_copied(self, twin: Any) -> None:
        """Give a copy paths, and measured differences, of its own."""
        twin._paths, twin._differences = self._paths.copied(), list(self._differences)

    def _draw_afresh(self) -> None:
        """Redraw what is due, before an estimate and so before the report is read."""
        blocks = self._paths.n_blocks
        if self.refresh == "submission":
            if self._stale:
                self._version += 1
                self._paths.redraw(stamp_of(self.now, REFRESH, self._version), 0, blocks)
            self._stale = False
            return
        while self._owed >= 1:
            count = min(int(self._owed), blocks - self._next_block)
            self._paths.redraw(stamp_of(self.now, REFRESH), self._next_block, self._next_block + count)
            self._next_block = (self._next_block + count) % blocks
            self._owed -= count

    def _on_submitted(self, residual: ResidualJob) -> None:
        self._paths.add(residual, stamp_of(self.now, SUBMIT))
        self._stale = True

    def _on_narrowed(self, residuals: Iterable[ResidualJob], kind: int) -> None:
        self._paths.narrow(residuals, stamp_of(self.now, kind))
        self._stale = True

    def _on_removed(self, residual: ResidualJob) -> None:
        self._paths.remove(residual.job, past=residual.is_past(self.now))
        self._stale = True

    def _on_forgotten(self, residual: ResidualJob) -> None:
        self._paths.forget(residual.job)

    def _on_advanced(self) -> None:
        self._paths.advance(self.now)
        self._owed = min(self._owed + self._share * self._paths.n_blocks, self._paths.n_blocks)
        self._version = 0
        self._stale = True

    def fresh_paths(self, samples: int, rng: Rng) -> SamplePaths:
        """Draw ``samples`` paths that no estimate has used; the laws are taken from the store as they are."""
        rng = generator_of(rng)
        self._settle()
        return self._paths.twin(samples, root_key(rng), stamp_of(self.now, FRESH))

    def fresh_table(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        """Return :meth:`table` on paths drawn for this question alone, from their own streams."""
        self._settle()
        paths = self._paths.twin(self.samples, self._probe_root, stamp_of(self.now, REFRESH))
        return paths.counts(concurrency, n_starts, n_durations) / self.samples

    def probe(self, concurrency: int, law: Law, starts: NDArray[np.int64], table: NDArray[np.float64]) -> None:
        """Every ``probe_every``-th time, note how far ``table`` is from a fresh one where the plan launches."""
        self._submissions += 1
        if self.probe_every is None or self._submissions % self.probe_every:
            return
        first = law.spread(starts)
        launched = (first >= 0) & (first + law.durations - 1 <= self.limits.horizon) & (law.probabilities > 0)
        if not launched.any():
            return
        cells = first[launched] - self.now, law.durations[launched] - 1
        fresh = self.fresh_table(concurrency, *table.shape)
        difference = table[cells] - fresh[cells]
        planned = float(np.average(difference, weights=law.probabilities[launched]))
        self._differences.append((planned, float((table - fresh).mean())))

    # -- jobs that are rows of columns, whose ranges are kept by who plays them ------------------------

    @property
    def paths(self) -> SamplePaths:
        """The paths."""
        return self._paths

    def unprobed(self, most: int) -> int:
        """Return how many of the next ``most`` submissions come before one that is probed."""
        every = self.probe_every
        return most if every is None else min(most, every - 1 - self._submissions % every)

    def took(self, rows: Sequence[int], slots: Sequence[int], used: NDArray[np.int64], *, probed: bool) -> None:
        """Follow submissions that were drawn already."""
        self._paths.took(rows, slots, used)
        self._submissions += 0 if probed else len(rows)
        self._stale = True

    def follow(self, slots: list[int], kind: int) -> None:
        """React to narrowed ranges."""
        self._paths.follow(slots, stamp_of(self.now, kind))
        self._stale = True

    def leave(self, row: int, *, past: bool) -> None:
        """React to a job leaving, see `SamplePaths.remove`."""
        self._paths.remove(row, past=past)
        self._stale = True

    def statistics(self) -> dict[str, Any]:
        """Return the measured bias: means of (estimate - fresh estimate), so negative is optimistic.

        ``bias`` is taken at the planned launches. It contains what any choice among noisy estimates brings, on fresh
        paths too: a start looks better than it is because it was chosen. ``bias_table`` is taken over the whole table a
        plan was chosen from, and so shows what keeping the paths does. ``..._half_width`` are half widths of 95 %
        intervals over the ``bias_probes`` probes of this run (normal approximation; NaN below two). Probes of kept
        paths share noise: compare runs with different seeds for a firm statement.
        """
        found = np.array(self._differences).reshape(-1, 2)
        n = len(found)
        means = found.mean(axis=0) if n else np.full(2, np.nan)
        halves = 1.96 * found.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(2, np.nan)
        names = ("bias", "bias_table")
        figures = dict(zip(names, means.tolist(), strict=True))
        figures |= {f"{name}_half_width": half for name, half in zip(names, halves.tolist(), strict=True)}
        return {"samples": self.samples, "refresh": self.refresh, **figures, "bias_probes": n}
