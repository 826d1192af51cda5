"""P4 for every machine at once, by the compiled parts of the primal step."""

import numpy as np

from marketsched.mechanisms.allocation.opm.kernels import QUAD, _measure, _settle
from marketsched.mechanisms.allocation.opm.projections import from_blocks, lanes_of


def to_blocks(dense):
    """Return (jobs, M) as blocks of shape (blocks, rows, lanes), filled up with zeros."""
    (n_jobs, n_machines), lanes = dense.shape, lanes_of(dense.shape[1])
    n_blocks = -(-n_machines // lanes)
    padded = np.zeros((-(-n_jobs // QUAD) * QUAD, n_blocks * lanes))
    padded[:n_jobs, :n_machines] = dense
    return np.ascontiguousarray(padded.reshape(-1, n_blocks, lanes).transpose(1, 0, 2))


def project_machines(points):
    """Return the closest shares with ``z >= 0`` and column sums of at most 1, of points of shape (n_jobs, M)."""
    given = np.asarray(points, dtype=float)
    if not given.size:
        return np.zeros_like(given)
    blocks = to_blocks(given)
    for block in blocks:
        low, total, count = np.zeros((3, blocks.shape[2]))
        _measure(block, given.shape[0], low, total, count)
        _settle(block, given.shape[0], low, total, count)
        block[: given.shape[0]] = np.maximum(block[: given.shape[0]] - low, 0.0)
    return from_blocks(blocks, *given.shape)
