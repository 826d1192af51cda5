r"""OgaSched for gangs: a subgradient or mirror step on the relaxed problem, and a repaired allocation.

The paper leaves the design of section 3.5 out. Here the policy keeps a state :math:`y` that is legal but for the
all-or-nothing rule, and plays its repair. The state moves by the subgradient of the reward at the state (OgaSched (9)
at :math:`Y = \sum_q y^q`, the same for all tasks of a port):

* ``geometry="euclidean"``: :math:`y \leftarrow \Pi_Y(y + \eta g)`, OgaSched (11);
* ``geometry="entropy"``: :math:`y \leftarrow \Pi^{KL}_Y(y e^{\eta g})`, mirror ascent with the entropy
  :math:`\sum y \ln y - y`. The projection is exact: :math:`\min(a, s z)` in every column, with the largest
  :math:`s \le 1` whose sum fits.

OgaSched (14), with the tasks as ports, bounds the state's regret in the relaxed problem, not that of the repair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.oga.ascent import ProjectedAscent
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
from marketsched.mechanisms.legal import Count, legal

_FLOOR = 1e-9  # of the requirement: an amount the mirror step can grow from
_MILD = 1.0  # largest exponent of a mirror step with the theory's step size
_STEEP = 50.0  # largest exponent of any: what grows faster is as good as infinite


class GangOga(ProjectedAscent):
    """Online gradient ascent for gangs; decides before the arrivals are known.

    ``step`` is "theory", OgaSched (26) for the Euclidean step and its counterpart for the mirror step, a number, or a
    function of the slot (from 1); ``geometry`` is "euclidean" or "entropy" (see the module).

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import GangCluster
    >>> gang = GangCluster([[[2.0], [2.0]]], [[3.0]], [[True]], [2], "linear", 1.0, 0.5)
    >>> policy = GangOga(gang, horizon=100)
    >>> policy.allocate()[:, 0, 0]
    array([1.5, 1.5])
    >>> policy.update([1])  # a job came
    """

    @legal
    def __init__(
        self,
        gang: GangCluster,
        horizon: Count,
        step: str | float | Callable[[int], float] = "theory",
        *,
        geometry: Literal["euclidean", "entropy"] = "euclidean",
    ) -> None:
        super().__init__(gang.relaxed, gang.n_ports, horizon, step)
        self.gang, self.geometry = gang, geometry
        self.name = "gang-oga" if geometry == "euclidean" else "gang-mirror"

    def allocate_channels(self) -> NDArray[np.float64]:
        """Return the repaired allocation as a channel array of tasks, a new one."""
        return self.gang.repair(self.state)

    def _gradient(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        together = np.maximum(self.gang.merge(self.state), 0.0)
        return self.gang.spread(self.gang.merged.channel_gradient(counts, together))

    def _theory(self, gradient: NDArray[np.float64]) -> float:
        if self.geometry == "euclidean":
            return super()._theory(gradient)
        size = float(np.sqrt((self.state * gradient * gradient).sum()))
        steepest = float(np.abs(gradient).max())
        if size == 0.0:
            return _MILD / steepest if steepest > 0.0 else 0.0
        return min(float(np.sqrt(entropy_width(self._space) / self.horizon)) / size, _MILD / steepest)

    def _moved(self, eta: float, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.geometry == "euclidean":
            return super()._moved(eta, gradient)
        space = self._space
        grown = np.maximum(self.state, _FLOOR * space.bounds) * np.exp(np.minimum(eta * gradient, _STEEP))
        return project_entropy(grown, space.bounds, space.capacities.ravel(), space.layout.columns)


def entropy_width(relaxed: BipartiteCluster) -> float:
    r"""Return a bound on the divergence of any legal allocation from `fair_shares`.

    :math:`\sum_{r,k} \min(c, A)(1 + \ln \max(1, A / c))`, where :math:`A` is what is asked of type k on
    instance r: an amount is at most :math:`\max(1, A / c)` times its fair share, and both sums at most
    :math:`\min(c, A)`.
    """
    asked, capacities = relaxed.used(relaxed.bounds), relaxed.capacities
    scarcity = np.divide(asked, capacities, out=np.ones_like(asked), where=(asked > capacities) & (capacities > 0.0))
    return float((np.minimum(capacities, asked) * (1.0 + np.log(scarcity))).sum())


def project_entropy(
    points: NDArray[np.float64],
    bounds: NDArray[np.float64],
    capacities: NDArray[np.float64],
    columns: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the legal point nearest to ``points`` in the divergence of the entropy; arrays as in `project_columns`."""
    out = np.empty_like(points)
    _project_entropy_kernel(points, bounds, capacities, columns, out)
    return out


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
