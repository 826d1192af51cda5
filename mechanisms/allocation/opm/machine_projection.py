"""Exact projection of shares onto what machines can run: P4, OPM (70)-(71), and OPM (19) for one job.

On every machine the shares of the jobs are projected, on their own, onto ``{z >= 0, sum z <= 1}``.
The solution is ``z = max(y - tau, 0)`` with the threshold ``tau = 0`` if that is legal, and else the
one with sum 1. The threshold is found by Newton steps on a piecewise linear function, which end
exactly, at O(jobs) each; a machine whose clipped shares fit gets no step at all. With one job
the set is the interval [0, 1], and the projection clips.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.kernels import LANES, QUAD, project_kernel
from marketsched.mechanisms.checks import float_array


def project_machines(points: ArrayLike) -> NDArray[np.float64]:
    """Return the solution of P4 for every machine.

    Parameters
    ----------
    points : array_like of float, shape (n_jobs, M)
        y, the shares after a primal step.

    Returns
    -------
    ndarray of float, shape (n_jobs, M)
        The closest shares with ``z >= 0`` and column sums of at most 1.

    Raises
    ------
    InvalidParameterError
        If ``points`` is not such an array.

    Examples
    --------
    >>> project_machines([[0.75, 0.25, 2.0], [0.5, -1.0, 0.5]])
    array([[0.625, 0.25 , 1.   ],
           [0.375, 0.   , 0.   ]])
    """
    given = float_array("points", points, (None, None))
    n_jobs, n_machines = given.shape
    if not given.size:
        return np.zeros_like(given)
    blocks = to_blocks(given)
    project_kernel(blocks, n_jobs, np.zeros((blocks.shape[0], blocks.shape[2])))
    return from_blocks(blocks, n_jobs, n_machines)


def lanes_of(n_machines: int) -> int:
    """Return how many machines one block of the compiled kernels holds."""
    return min(LANES, -(-n_machines // 16) * 16)


def to_blocks(dense: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (jobs, M) as blocks of shape (blocks, rows, lanes), filled up with zeros; see `opm_kernels`."""
    n_jobs, n_machines = dense.shape
    lanes = lanes_of(n_machines)
    n_blocks = -(-n_machines // lanes)
    padded = np.zeros((-(-n_jobs // QUAD) * QUAD, n_blocks * lanes))
    padded[:n_jobs, :n_machines] = dense
    return np.ascontiguousarray(padded.reshape(-1, n_blocks, lanes).transpose(1, 0, 2))


def from_blocks(blocks: NDArray[np.float64], n_jobs: int, n_machines: int) -> NDArray[np.float64]:
    """Return the first ``n_jobs`` rows of all machines of blocks as a dense copy, shape (n_jobs, M)."""
    dense = blocks[:, :n_jobs].transpose(1, 0, 2).reshape(n_jobs, blocks.shape[0] * blocks.shape[2])
    return np.ascontiguousarray(dense[:, :n_machines])
