r"""OgaSched: online gradient ascent on the reward of a bipartite cluster.

In every slot the amounts of the *next* slot are

.. math:: y(t + 1) = \Pi_{\mathcal{Y}}\bigl(y(t) + \eta_t \nabla q(x(t), y(t))\bigr)

((11) of the OgaSched paper): the decision of a slot is taken before its arrivals are known. The authors'
published code looks at the arrivals first; ``peek=True`` does that, as an ablation.

How a slot is computed: the sums per port and type that the previous pass left give the dominant type of each port and
the norm of the gradient, hence the step; then one pass over the channels writes new amounts, slopes and sums (see
`oga_kernels`; what lies where, `oga_lanes`). The pass is cut into blocks once, whatever the number of threads, and the
sums of the blocks are added in order: results are the same, bit by bit, with any number of threads. Threads come from
an executor and run compiled code that releases the interpreter's lock: numba's own layers either do not survive a fork
or abort when entered twice.

The *theory* step is :math:`\eta_t = \mathrm{diam}(\mathcal{Y}) / (\|\nabla q\| \sqrt{T})`, OgaSched (26),
with the bound OgaSched (25) in place of the diameter and the gradient of the slot itself. The proof of the bound
OgaSched (14) takes one step for all slots: with a port that seldom has a job and a small gradient otherwise the regret
of the theory step grows like T. The *theorem* step is that of the proof, the diameter over :math:`\sqrt{T}` times the
largest norm of any gradient, OgaSched (22); for it (14) is proven, with at most one job a port and slot.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.oga_kernels import aim_kernel, pass_kernel, slot_kernel
from marketsched.mechanisms.allocation.oga.oga_lanes import LaneState
from marketsched.mechanisms.arrays import count_array
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import LARGEST, Amount, Count, Finite, Positive, legal

Schedule = Callable[[int], float]
THEORY: Final = "theory"
THEOREM: Final = "theorem"
_LOG_LARGEST: Final = math.log(LARGEST)
_STEP: Final = Finite("[0, inf)")


@legal
def geometric_step(first: Amount = 25.0, decay: Positive = 0.9999, horizon: int | None = None) -> Schedule:
    r"""Return :math:`\eta_t = \eta_0 \, \delta^t`, the schedule of the authors' published code.

    A decay above 1 makes steps grow, as the OgaSched paper tries in its Fig. 4(b); steps that outgrow 1e100 by
    ``horizon`` are refused now, without it in their slot.
    """
    if horizon is not None and first > 0 and decay > 1 and math.log(first) + horizon * math.log(decay) > _LOG_LARGEST:
        most = math.exp((_LOG_LARGEST - math.log(first)) / horizon)
        most = math.floor(most * 1e4) / 1e4  # rounded down: what the line offers is legal
        raise InvalidParameterError(
            f"decay = {decay!r}: expected at most {most:g}: "
            f"steps from {first:g} on pass {LARGEST:g} within {horizon} slots"
        )

    def step(t: int) -> float:
        try:
            return first * decay**t
        except OverflowError:  # `step_of` then says what is legal
            return math.inf

    return step


def step_schedule(step: str | float | Schedule) -> Schedule | None:
    """Return "theory" (as None), a number in [0, 1e100] or a function of the slot, from 1, as a schedule of steps."""
    if isinstance(step, str):
        if step != THEORY:
            raise InvalidParameterError(f"step = {step!r}: expected {THEORY!r}, a number or a function of the slot")
        return None
    if callable(step):
        return step
    constant = _STEP.check("step", step)
    return lambda t: constant


def step_of(schedule: Schedule, slot: int) -> float:
    """Return the step of one slot, checked."""
    return _STEP.check(f"step of slot {slot}", schedule(slot))


def _proven_step(cluster: BipartiteCluster, horizon: int) -> float:
    """Return the step of the proof of OgaSched (14); 0 where nothing has a gradient."""
    steepest = cluster.gradient_bound()
    return cluster.diameter() / (steepest * horizon**0.5) if steepest > 0 else 0.0


_COUNTS = np.dtype(np.int64)


class OgaSched:
    """Online gradient ascent (see the module).

    Parameters
    ----------
    cluster : BipartiteCluster
    horizon : int
        T, slots; only the theory step depends on it.
    step : "theory", "theorem", float or callable
        Size of the step: OgaSched (26), that of the proof of OgaSched (14), a constant, or a function of the slot,
        counted from 1 (see the module). ``last_step`` is the one taken last.
    initial : array_like of float, shape (n_ports, n_instances, n_types)
        y(1), legal; default: what each instance has, in proportion to all requests, at most the request.
    peek : bool
        Ablation, not the paper's policy: ``allocate`` gets the slot's arrivals, takes everything from
        the ports without jobs, and ascends before it decides.
    threads : int
        How many share a pass over ``n_blocks`` parts of the cluster; results do not depend on it.

    Examples
    --------
    >>> cluster = BipartiteCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0)
    >>> policy = OgaSched(cluster, horizon=100, step=0.5)
    >>> policy.allocate()[:, 0, 0]
    array([1., 1.])
    >>> policy.update([1, 0])
    >>> policy.allocate()[:, 0, 0]
    array([1.125, 0.875])
    """

    @legal
    def __init__(
        self,
        cluster: BipartiteCluster,
        horizon: Count,
        step: str | float | Schedule = "theory",
        initial: ArrayLike | None = None,
        peek: bool = False,
        threads: Count = 1,
    ) -> None:
        self.cluster = cluster
        self.horizon = horizon
        self.threads = threads
        self.peek = bool(peek)
        self.name = "ogasched-peek" if peek else "ogasched"
        self.observes = "arrivals" if peek else "nothing"
        self.last_step = 0.0
        self._proven = step == THEOREM and not self.peek
        self._schedule = step_schedule(_proven_step(cluster, horizon) if step == THEOREM else step)
        self._reach = cluster.diameter() / self.horizon**0.5 if self._schedule is None else 0.0
        self._slots = 0
        self._decided = False
        self._executor: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._tables = np.zeros(2 * cluster.n_types * cluster.n_ports)
        self._state = LaneState(cluster)
        first = cluster.fair_shares()
        if initial is not None:
            dense = np.asarray(initial, dtype=np.float64)
            cluster.check_allocation(dense)
            first = cluster.layout.to_channels(dense)
        self._state.put(first)
        state = self._state
        columns = tuple(state.columns)  # numba takes a plain tuple a microsecond faster than a named one
        self._read = (columns, state.amounts, state.slopes, self._tables, state.sums)  # by both kernels
        self._n_ports = np.uint64(cluster.n_ports)
        self._counts, self._betas = np.zeros(cluster.n_ports, dtype=np.int64), cluster.overhead.copy()
        self.n_blocks = state.sums.shape[0]
        self._scratch = [state.scratch() for _ in range(min(self.threads, self.n_blocks))]
        self._pass()

    @property
    def bound_is_compared(self) -> bool:
        """Whether regret is compared with (14): of the step of its proof, and of OgaSched (26), made after it."""
        return self._proven or (self._schedule is None and not self.peek)

    def allocate(self, arrivals: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return y(t), a copy, shape (n_ports, n_instances, n_types); ``arrivals`` once a slot, with ``peek`` alone."""
        return self.cluster.layout.to_dense(self.allocate_channels(arrivals))

    def allocate_channels(self, arrivals: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return y(t) as a read-only channel array, valid until the next call; as `allocate`."""
        if not self.peek:
            if arrivals is not None:
                raise InvalidParameterError("arrivals given to a policy that observes nothing: expected none")
            return self._state.channels()
        if self._decided:
            raise EventError("allocate called twice in a slot: expected update in between")
        counts = count_array("arrivals", () if arrivals is None else arrivals, self.cluster.n_ports)
        present = np.repeat((counts > 0).astype(np.float64)[:, None], self.cluster.n_types, axis=1)
        self._state.put(self._state.channels() * self.cluster.layout.spread_ports(present))
        self._tables[:] = 0.0
        self._pass()
        self._ascend(counts)
        self._decided = True
        return self._state.channels()

    def update(self, arrivals: ArrayLike) -> None:
        """Learn the slot's arrivals, counts >= 0 of shape (n_ports,); with ``peek``, end the slot."""
        if type(arrivals) is np.ndarray and arrivals.dtype is _COUNTS and arrivals.shape == self._counts.shape:
            counts: NDArray[np.int64] = arrivals  # the kernel refuses negative ones
        else:
            counts = count_array("arrivals", arrivals, self.cluster.n_ports)
        if self.peek:
            self._decided = False
        else:
            self._ascend(counts)

    def _ascend(self, counts: NDArray[np.int64]) -> None:
        """Take one step along the gradient of the slot."""
        given = 0.0 if self._schedule is None else step_of(self._schedule, self._slots + 1)
        self._counts[:] = counts  # one layout, so that nothing is compiled twice
        if len(self._scratch) == 1:
            step = slot_kernel(self._counts, self._betas, self._reach, given, self._scratch[0], *self._read)
        else:
            step = aim_kernel(self._counts, self._betas, self._reach, given, self._tables, self._state.sums)
        if step < 0.0:
            count_array("arrivals", counts, self.cluster.n_ports)  # raises: a count is negative
        if len(self._scratch) > 1 and step > 0.0:
            self._share_pass()
        self._slots += 1
        self.last_step = step

    def _share_pass(self) -> None:
        """Run the pass on several threads: each its own blocks, then what others have not begun.

        A thread that passes the same blocks in every slot finds them in its core's cache; one that takes the lock for
        every block waits for others that do. So there are two spans of blocks for each, and it takes its own first.
        """
        if self._executor is None or self._process != os.getpid():  # threads do not survive a fork
            self._executor, self._process = ThreadPoolExecutor(len(self._scratch) - 1, "ogasched"), os.getpid()
        n = len(self._scratch)
        ends = [self.n_blocks * i // (2 * n) for i in range(2 * n + 1)]
        spans = [deque([(ends[2 * i], ends[2 * i + 1]), (ends[2 * i + 1], ends[2 * i + 2])]) for i in range(n)]
        others = [self._executor.submit(self._take_spans, spans, thread) for thread in range(1, n)]
        self._take_spans(spans, 0)
        for other in others:
            other.result()

    def _take_spans(self, spans: list[deque[tuple[int, int]]], thread: int) -> None:
        for turn in range(len(spans)):
            share = spans[(thread + turn) % len(spans)]
            while share:
                try:
                    begin, end = share.popleft()
                except IndexError:  # another thread was faster
                    break
                pass_kernel(begin, end, self._scratch[thread], *self._read, self._n_ports)

    def _pass(self) -> None:
        pass_kernel(0, self.n_blocks, self._scratch[0], *self._read, self._n_ports)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out threads: a copy starts its own."""
        return {**self.__dict__, "_executor": None}
