"""The store behind the Monte Carlo oracle: paths, their loads, and the active jobs' laws.

One slot per active job; the laws of all slots lie one after the other in shared arrays, so that a kernel handles many
jobs in one call. See :mod:`marketsched.mechanisms.posted.path_kernels` for what a path is and how it is kept true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.posted import path_kernels as kernels
from marketsched.mechanisms.posted.draws import law_kernel
from marketsched.mechanisms.posted.failure_table import Launches, failure_counts, joint_failures
from marketsched.mechanisms.posted.path_kernels import (
    BUCKETS,
    BUCKETS_PER_POINT,
    GUIDE,
    HIGH,
    KEY,
    LANES,
    LOW,
    MAY_NEVER,
    N_COLUMNS,
    OFFSET,
    POINTS,
    WIDTH,
    Paths,
)
from marketsched.mechanisms.posted.residual import Eviction, ResidualJob

MAX_POINTS = 65_000  # outcomes of one job: a drawn outcome is stored in 16 bits
MAX_CELLS = 2**29  # loads of all paths: one GB, or two
INT16_TOP = np.iinfo(np.int16).max


class SamplePaths:
    """``n_paths`` joint draws of the active jobs' outcomes, and the resulting loads.

    ``root`` keys all draws; paths evict by the rule ``eviction``. TooLargeError above `MAX_CELLS` entries of loads.
    """

    def __init__(self, n_paths: int, limits: MarketLimits, root: np.uint64, eviction: Eviction = "all") -> None:
        self.n_paths = n_paths
        self.limits, self.root, self.eviction = limits, root, eviction
        self.now = 1
        self.n_blocks = -(-n_paths // LANES)
        self.window = limits.window
        self.capacity = limits.capacity if eviction == "running" else -1
        if self.n_blocks * LANES * self.window > MAX_CELLS:
            raise TooLargeError(
                f"{n_paths} sample paths of {self.window} rounds",
                legal=f"at most {MAX_CELLS} loads in all; fewer samples, or a smaller max_delay and max_duration",
            )
        # 16 bits hold loads and rounds ahead; wider markets turn to 32 (see add).
        shape = (self.n_blocks, self.window, LANES)
        narrow = self.window < INT16_TOP
        self.loads: NDArray[np.int16] | NDArray[np.int32] = (
            np.zeros(shape, np.int16) if narrow else np.zeros(shape, np.int32)
        )
        self.row_tops = np.zeros(self.window, np.int64)
        self.draws = np.zeros((16, self.n_blocks * LANES), np.uint16)
        self.cut = np.zeros(self.n_blocks * LANES, np.uint8)
        self.again = np.zeros(self.n_blocks * LANES, np.uint8)
        self._slots = np.zeros((16, N_COLUMNS), np.int64)
        self._points = np.zeros((2, 1024), np.int64)
        self._cumulated = np.zeros(1024)
        self._guides = np.zeros(BUCKETS_PER_POINT * 1024, np.uint16)
        self._used = 0  # of the point arrays
        self._guides_used = 0
        self._slot_of: dict[JobId, int] = {}  # in order of submission
        self._free = list(range(15, -1, -1))
        self._total_width = 0

    # -- what happens to jobs --------------------------------------------------------------------

    def add(self, residual: ResidualJob, stamp: int) -> None:
        """Draw the outcomes of a new job on every path."""
        slot = self._new_slot(residual.law.arrivals.size)
        self._slot_of[residual.job] = slot
        self._store_law(slot, residual)
        self._widen(residual.width)
        self._place([slot], stamp, 0, self.n_blocks)

    @property
    def arrays(self) -> Paths:
        """All that is kept."""
        return Paths(*self._store)

    @property
    def slot_of(self) -> dict[JobId, int]:
        """The slots of jobs, in order of submission."""
        return self._slot_of

    def make_room(self, n_jobs: int, n_points: int, width: int) -> tuple[list[int], NDArray[np.int64]]:
        """Return slots for more jobs of so many outcomes and nodes in all, and what of the laws' arrays is used.

        `took` follows, with what is used then: of the outcomes' arrays, of guides; shape (2,).
        """
        slots = [self._new_slot(n_points, 2 * n_jobs) for _ in range(n_jobs)]
        self._widen(width)
        return slots, np.array([self._used, self._guides_used])

    def took(self, jobs: Sequence[JobId], slots: Sequence[int], used: NDArray[np.int64]) -> None:
        """Note whose the slots are that `make_room` gave, and what is used of the outcomes' arrays."""
        self._slot_of.update(zip(jobs, slots, strict=True))
        self._used, self._guides_used = int(used[0]), int(used[1])

    def narrow(self, residuals: Iterable[ResidualJob], stamp: int) -> None:
        """Follow the narrowed ranges of some jobs."""
        chosen = []
        for residual in residuals:
            slot = self._slot_of[residual.job]
            self._store_range(slot, residual)
            chosen.append(slot)
        self.follow(chosen, stamp)

    def follow(self, chosen: list[int], stamp: int) -> None:
        """Draw anew, on the paths of the jobs in these slots, what their ranges no longer allow."""
        slots = np.array(chosen, dtype=np.int64)
        kernels._narrow_kernel(self._store, slots, self.now, self.n_paths, self.capacity, self.root, stamp)
        self._place_again()

    def remove(self, job: JobId, *, past: bool) -> None:
        """Take a job off all paths; ``past``: whether all that it can still occupy are past rounds."""
        slot = self.forget(job)
        if past:
            return  # as after every completion with a known duration: its rows are cleared already
        kernels._remove_kernel(self._store, slot, self.now, self.n_paths)
        self._place_again()

    def forget(self, job: JobId) -> int:
        """Let go of the slot of a job that occupies nothing on any path from now on; return the slot."""
        slot = self._slot_of.pop(job)
        self._free.append(slot)
        self._total_width -= int(self._slots[slot, WIDTH])
        return slot

    def advance(self, now: int) -> None:
        """Move to round ``now``: the rows of past rounds become those of rounds to come."""
        for past in range(max(self.now, now - self.window), now):
            self.loads[:, past % self.window, :] = 0
            self.row_tops[past % self.window] = 0
        self.now = now

    def redraw(self, stamp: int, first_block: int, end_block: int) -> None:
        """Draw the paths of some blocks afresh from the conditional laws."""
        self.loads[first_block:end_block] = 0
        self.cut[first_block * LANES : end_block * LANES] = 0
        if first_block == 0 and end_block == self.n_blocks:
            self.row_tops[:] = 0
        self._place(list(self._slot_of.values()), stamp, first_block, end_block)

    def twin(self, n_paths: int, root: np.uint64, stamp: int) -> SamplePaths:
        """Return ``n_paths`` new paths of the same jobs, drawn under another root key; ``self`` stays as it is.

        For estimates of this moment alone: drawn outcomes are not kept and laws are shared, so no event follows.
        """
        twin = SamplePaths(n_paths, self.limits, root, self.eviction)
        twin.now = self.now
        if self.loads.dtype == np.int32:
            twin.loads = twin.loads.astype(np.int32)
        twin.draws = np.zeros((1, twin.n_blocks * LANES), np.uint16)
        twin._slots, twin._points, twin._cumulated, twin._guides = (
            self._slots,
            self._points,
            self._cumulated,
            self._guides,
        )
        twin._slot_of, twin._total_width = self._slot_of, self._total_width
        twin._place(list(self._slot_of.values()), stamp, 0, twin.n_blocks)
        return twin

    def copied(self) -> SamplePaths:
        """Return the same paths, which can be changed while ``self`` stays as it is."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (np.ndarray, dict, list)):
                setattr(other, name, value.copy())
        return other

    # -- what the oracle asks --------------------------------------------------------------------

    def counts(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.int64]:
        """Return the failing paths of starts ``now + i`` and durations ``k + 1``, see (6')."""
        return failure_counts(
            self.loads,
            self.row_tops,
            self.now % self.window,
            n_starts + n_durations - 1,
            n_starts,
            n_durations,
            soft=self.limits.capacity - concurrency,
            hard=self._hard,
        )

    def joint_counts(
        self, concurrencies: NDArray[np.int64], first_start: int, n_starts: int, launches: Launches
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the failing paths of starts ``first_start + i``, alone and with an anchor: `joint_failures`."""
        return joint_failures(
            self.loads,
            self.row_tops,
            self.now % self.window,
            first_start - self.now,
            n_starts,
            launches,
            softs=self.limits.capacity - concurrencies,
            hard=self._hard,
        )

    @property
    def _hard(self) -> int:
        """The load above which a later job is lost before it starts: none under the ``running`` rule."""
        return self.limits.capacity if self.capacity < 0 else np.iinfo(np.int32).max

    # -- storage ---------------------------------------------------------------------------------

    @property
    def _store(self) -> tuple[Any, ...]:
        """The fields of `Paths` as every kernel takes them."""
        jobs = (self._slots, self._points, self._cumulated, self._guides)
        return (self.loads, self.row_tops, self.draws, self.cut, self.again, *jobs)

    def _place(self, chosen: list[int], stamp: int, first_block: int, end_block: int) -> None:
        slots, blocks = np.array(chosen, dtype=np.int64), (first_block, end_block)
        kernels.place_kernel(self._store, slots, self.now, self.n_paths, self.capacity, self.root, stamp, blocks)

    def _place_again(self) -> None:
        """Rebuild the paths marked ``again``, job by job in order of submission."""
        if self.capacity < 0 or not self.again.any():
            return
        kernels._empty_kernel(self.loads, self.cut, self.again, self.n_paths)
        self._place(list(self._slot_of.values()), -1, 0, self.n_blocks)
        self.again[:] = 0

    def _widen(self, width: int) -> None:
        """Note that so many nodes more may be occupied: loads above 16 bits take 32."""
        self._total_width += width
        if self._total_width > INT16_TOP and self.loads.dtype == np.int16:
            self.loads = self.loads.astype(np.int32)

    def _new_slot(self, n_points: int, more: int = 2) -> int:
        """Return a free slot, with room for ``n_points + more`` entries of outcomes."""
        if not self._free:
            old = self.draws.shape[0]
            if not self.draws.flags.owndata:  # after unpickling the memory is numpy's, and cannot grow
                self.draws = self.draws.copy()
            # In place, without a second copy: this is the one large array, and no view of it is kept.
            self.draws.resize((2 * old, self.draws.shape[1]), refcheck=False)
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
            self._free = list(range(2 * old - 1, old - 1, -1))
        if (
            self._used + n_points + more > self._cumulated.size
            or self._guides_used + BUCKETS_PER_POINT * n_points > self._guides.size
        ):
            self._compact(n_points + more)
        return self._free.pop()

    def _store_law(self, slot: int, residual: ResidualJob) -> None:
        """Write one law behind the others, with its guide table for drawing."""
        n_points = residual.law.arrivals.size
        offset, guide = self._used, self._guides_used
        n_buckets = BUCKETS_PER_POINT * n_points
        columns = (residual.firsts, residual.lasts, residual.law.probabilities)
        arrays = (self._points, self._cumulated, self._guides)
        steps = law_kernel(*columns, *arrays, offset, guide, n_buckets)
        row = self._slots[slot]
        row[: MAY_NEVER + 1] = offset, n_points, guide, n_buckets, steps, 0, 0, 0
        row[WIDTH], row[KEY] = residual.width, residual.order
        self._store_range(slot, residual)
        self._used += n_points + 2
        self._guides_used += n_buckets

    def _store_range(self, slot: int, residual: ResidualJob) -> None:
        """Write what is still possible; the outcome behind "never" is d = D_max."""
        row = self._slots[slot]
        row[LOW], row[HIGH], row[MAY_NEVER] = residual.low, residual.high, residual.may_never
        if residual.exhausted:
            assert residual.start is not None
            last = residual.start + self.limits.max_duration - 1
            self._points[:, row[OFFSET] + row[POINTS] + 1] = residual.start, last

    def _compact(self, needed: int) -> None:
        """Move the live laws together and make room for ``needed`` points more."""
        live = sum(int(self._slots[s, POINTS]) + 2 for s in self._slot_of.values())
        size = self._cumulated.size
        while size < 2 * (live + needed):
            size *= 2
        points, cumulated, guides = (
            np.zeros((2, size), np.int64),
            np.zeros(size),
            np.zeros(BUCKETS_PER_POINT * size, np.uint16),
        )
        used = guides_used = 0
        for slot in self._slot_of.values():
            row = self._slots[slot]
            n, old = int(row[POINTS]) + 2, int(row[OFFSET])
            points[:, used : used + n] = self._points[:, old : old + n]
            cumulated[used : used + n] = self._cumulated[old : old + n]
            old_guide, buckets = int(row[GUIDE]), int(row[BUCKETS])
            guides[guides_used : guides_used + buckets] = self._guides[old_guide : old_guide + buckets]
            row[OFFSET], row[GUIDE] = used, guides_used
            used, guides_used = used + n, guides_used + buckets
        self._points, self._cumulated, self._guides = points, cumulated, guides
        self._used, self._guides_used = used, guides_used
