r"""OgaSched for gangs: a subgradient or mirror step on the relaxed problem, and a repaired allocation.

The paper says of section 3.5 that subgradient and mirror ascent apply, and leaves the design out. Here the
policy keeps a state :math:`y` that is legal but for the all-or-nothing rule, and plays its repair. The state
moves by the subgradient of the reward at the state (OgaSched (9) at :math:`Y = \sum_q y^q`, the same for all
tasks of a port):

* ``geometry="euclidean"``: :math:`y \leftarrow \Pi_Y(y + \eta g)`, OgaSched (11);
* ``geometry="entropy"``: :math:`y \leftarrow \Pi^{KL}_Y(y e^{\eta g})`, mirror ascent with the entropy
  :math:`\sum y \ln y - y`. The projection is exact: :math:`\min(a, s z)` in every column, with the largest
  :math:`s \le 1` whose sum fits.

The guarantee of OgaSched (14), with the tasks as ports, is one for the state's rewards in the relaxed
problem. The repair is not covered by it: what it costs is to be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
from marketsched.mechanisms.allocation.oga.projection import project_columns
from marketsched.mechanisms.arrays import check_shape, count_array, float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, Named, legal

GEOMETRIES = ("euclidean", "entropy")
_FLOOR = 1e-9  # of the requirement: an amount the mirror step can grow from
_MILD = 1.0  # largest exponent of a mirror step with the theory's step size
_STEEP = 50.0  # largest exponent of any: what grows faster is as good as infinite


class GangOga:
    """Online gradient ascent for gangs; decides before the arrivals are known.

    Parameters
    ----------
    gang : GangCluster
    horizon : int
        T, slots.
    step : {"theory"} or float or callable
        The step size: OgaSched (26) for the Euclidean step and its counterpart for the mirror step, or a
        number > 0, or a function of the slot (from 1) that returns one.
    geometry : {"euclidean", "entropy"}
        Of the step (see the module).
    initial : array_like of float, shape (n_tasks, n_instances, n_types), optional
        First state, legal for ``gang.relaxed``; by default every instance is shared in proportion to
        requirements.

    Attributes
    ----------
    name, observes : str
        "gang-oga" or "gang-mirror", and "nothing".

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import GangCluster
    >>> gang = GangCluster([[[2.0], [2.0]]], [[3.0]], [[True]], [2], "linear", 1.0, 0.5)
    >>> policy = GangOga(gang, horizon=100)
    >>> policy.allocate()[:, 0, 0]
    array([1.5, 1.5])
    >>> policy.update([1])  # a job came
    """

    observes = "nothing"

    @legal
    def __init__(
        self,
        gang: GangCluster,
        horizon: Count,
        step: str | float | Callable[[int], float] = "theory",
        *,
        geometry: Annotated[str, Named(tuple(GEOMETRIES))] = "euclidean",
        initial: ArrayLike | None = None,
    ) -> None:
        self.gang = gang
        self.horizon = horizon
        self.geometry = geometry
        self.name = "gang-oga" if geometry == "euclidean" else "gang-mirror"
        if isinstance(step, str) and step != "theory":
            raise InvalidParameterError(f"step = {step!r}: expected 'theory', a number > 0, or a function of the slot")
        if not isinstance(step, str) and not callable(step):
            _check_step(step)
        self._step, self._slot = step, 1
        self._capacities = gang.relaxed.capacities.ravel()
        self._state = gang.relaxed.fair_shares() if initial is None else self._checked(initial)

    @property
    def state(self) -> NDArray[np.float64]:
        """The relaxed allocation before repair, as a read-only channel array of tasks."""
        view = self._state.view()
        view.flags.writeable = False
        return view

    def allocate(self) -> NDArray[np.float64]:
        """Return the repaired allocation, shape (n_tasks, n_instances, n_types)."""
        return self.gang.relaxed.layout.to_dense(self.allocate_channels())

    def allocate_channels(self) -> NDArray[np.float64]:
        """Return the repaired allocation as a channel array of tasks, a new one."""
        return self.gang.repair_channels(self._state)

    def update(self, arrivals: ArrayLike) -> None:
        """Move the state along the subgradient of the slot's reward.

        Parameters
        ----------
        arrivals : array_like of int, shape (n_ports,)
            Jobs that arrived.

        Raises
        ------
        InvalidParameterError
            If these are not counts, or the step of this slot is not a number > 0.
        """
        counts = count_array("arrivals", arrivals, self.gang.n_ports)
        gradient = self.gang.spread(port_subgradient(self.gang, counts, self.gang.merge(self._state)))
        eta = self._step_size(gradient)
        relaxed = self.gang.relaxed
        if eta > 0.0 and self.geometry == "euclidean":
            moved = self._state + eta * gradient
            self._state = project_columns(moved, relaxed.bounds, self._capacities, relaxed.layout.columns).points
        elif eta > 0.0:
            moved = np.maximum(self._state, _FLOOR * relaxed.bounds) * np.exp(np.minimum(eta * gradient, _STEEP))
            self._state = project_entropy(moved, relaxed.bounds, self._capacities, relaxed.layout.columns)
        self._slot += 1

    def _step_size(self, gradient: NDArray[np.float64]) -> float:
        """Return eta; 0 if there is nothing to learn."""
        if callable(self._step):
            return _check_step(self._step(self._slot))
        if not isinstance(self._step, str):
            return float(self._step)
        if self.geometry == "euclidean":
            size = float(np.sqrt((gradient * gradient).sum()))  # a BLAS norm would wait for its threads
            return self.gang.relaxed.diameter() / (size * float(np.sqrt(self.horizon))) if size > 0.0 else 0.0
        size = float(np.sqrt((self._state * gradient * gradient).sum()))
        steepest = float(np.abs(gradient).max())
        if size == 0.0:
            return _MILD / steepest if steepest > 0.0 else 0.0
        return min(float(np.sqrt(entropy_width(self.gang) / self.horizon)) / size, _MILD / steepest)

    def _checked(self, initial: ArrayLike) -> NDArray[np.float64]:
        relaxed = self.gang.relaxed
        dense = float_array("initial", initial, (relaxed.n_ports, relaxed.n_instances, relaxed.n_types))
        relaxed.check_allocation(dense)
        return np.maximum(relaxed.layout.to_channels(dense), 0.0)


def entropy_width(gang: GangCluster) -> float:
    r"""Return a bound on the divergence of any legal allocation from ``relaxed.fair_shares()``.

    :math:`\sum_{r,k} \min(c, A)(1 + \ln \max(1, A / c))`, where :math:`A` is what is asked of type k on
    instance r: an amount is at most :math:`\max(1, A / c)` times its fair share, and both sums at most
    :math:`\min(c, A)`.
    """
    relaxed = gang.relaxed
    asked, capacities = relaxed.used(relaxed.bounds), relaxed.capacities
    scarcity = np.divide(asked, capacities, out=np.ones_like(asked), where=(asked > capacities) & (capacities > 0.0))
    return float((np.minimum(capacities, asked) * (1.0 + np.log(scarcity))).sum())


def port_subgradient(
    gang: GangCluster, counts: NDArray[np.int64], together: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the subgradient of the slot's reward as a channel array of ports.

    Parameters
    ----------
    gang : GangCluster
    counts : ndarray of int64, shape (n_ports,)
        Jobs that arrived.
    together : ndarray of float, shape (merged.layout.size,)
        Amounts of the ports, summed over tasks; >= 0.
    """
    merged, gradient = gang.merged, np.empty_like(together)
    _port_subgradient_kernel(
        counts,
        together,
        merged.layout.ports,
        merged.layout.offsets,
        merged.gain,
        merged.alpha,
        merged.overhead,
        gradient,
    )
    return gradient


def project_entropy(
    points: NDArray[np.float64],
    bounds: NDArray[np.float64],
    capacities: NDArray[np.float64],
    columns: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the legal point nearest to ``points`` in the divergence of the entropy, column by column.

    Parameters
    ----------
    points, bounds : ndarray of float, shape (n,)
        Numbers >= 0.
    capacities : ndarray of float, shape (n_columns,)
        Numbers >= 0.
    columns : ndarray of int, shape (n_columns + 1,)
        Column j is ``points[columns[j]:columns[j + 1]]``; columns may be empty.

    Examples
    --------
    >>> project_entropy(np.array([3.0, 1.0, 4.0]), np.array([9.0, 9.0, 1.0]), np.array([3.0]), np.array([0, 3]))
    array([1.5, 0.5, 1. ])
    """
    z = float_array("points", points, (None,), lowest=0.0)
    a = float_array("bounds", bounds, z.shape, lowest=0.0)
    starts = np.asarray(columns, dtype=np.int64)
    check_shape("columns", starts.shape, (None,))
    if starts.size < 1 or starts[0] != 0 or starts[-1] != z.size or (np.diff(starts) < 0).any():
        raise InvalidParameterError(f"columns do not rise from 0 to {z.size}: expected where each column starts")
    c = float_array("capacities", capacities, (starts.size - 1,), lowest=0.0)
    out = np.empty_like(z)
    _project_entropy_kernel(z, a, c, starts, out)
    return out


def _check_step(step: object) -> float:
    return Finite("(0, inf)").check("step", step)


@njit(cache=True)
def _port_subgradient_kernel(counts, together, ports, offsets, codes, alphas, betas, gradient):  # type: ignore[no-untyped-def]
    """Fill ``gradient``; codes of gains as in ``gains``."""
    n_types, n_ports = betas.size, counts.size
    totals = np.zeros((n_ports, n_types))
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            for i in range(n):
                totals[ports[first + i], k] += together[first * n_types + k * n + i]
    dominant = np.zeros(n_ports, dtype=np.int64)
    for port in range(n_ports):
        for k in range(1, n_types):
            if betas[k] * totals[port, k] > betas[dominant[port]] * totals[port, dominant[port]]:
                dominant[port] = k
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            code, alpha = codes[r, k], alphas[r, k]
            for i in range(n):
                place, port = first * n_types + k * n + i, ports[first + i]
                y = max(together[place], 0.0)
                if code == 0:
                    slope = alpha
                elif code == 1:
                    slope = alpha / (y + 1.0)
                elif code == 2:
                    slope = 1.0 / (y + alpha) ** 2
                else:
                    slope = 0.5 * alpha / np.sqrt(y + 1.0)
                if dominant[port] == k:
                    slope -= betas[k]
                gradient[place] = counts[port] * slope


@njit(cache=True)
def _project_entropy_kernel(z, a, c, columns, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with min(a, s z), s the largest number <= 1 whose sum fits.

    The sum is concave and piecewise linear in s: Newton's steps from s = 0 rise to the root and stop at it.
    """
    for j in range(c.size):
        begin, end = columns[j], columns[j + 1]
        total = 0.0
        for i in range(begin, end):
            total += min(z[i], a[i])
        scale = 1.0
        if total > c[j]:
            scale = 0.0
            for _ in range(end - begin + 1):
                room, slope = c[j], 0.0
                for i in range(begin, end):
                    if scale * z[i] >= a[i]:
                        room -= a[i]
                    else:
                        slope += z[i]
                step = max(room, 0.0) / slope if slope > 0.0 else scale
                if step <= scale:
                    break
                scale = step
        for i in range(begin, end):
            out[i] = min(scale * z[i], a[i])
