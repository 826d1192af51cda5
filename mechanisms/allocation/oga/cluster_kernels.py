"""Compiled loops over channel arrays that the cluster needs beside the projection."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def channel_rewards_kernel(counts, flat, ports, offsets, codes, alphas, betas, gain, overhead):  # type: ignore[no-untyped-def]
    """Fill gain and overhead per port (OgaSched (5)); codes of gains as in ``gains``."""
    n_types = betas.size
    totals = np.zeros((n_types, counts.size))
    gain[:] = 0.0
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            start, code, alpha = first * n_types + k * n, codes[r, k], alphas[r, k]
            for i in range(n):
                port, y = ports[first + i], flat[start + i]
                if counts[port] > 0 and y > 0.0:
                    totals[k, port] += y
                    if code == 0:
                        gain[port] += alpha * y
                    elif code == 1:
                        gain[port] += alpha * math.log(y + 1.0)
                    elif code == 2:
                        gain[port] += 1.0 / alpha - 1.0 / (y + alpha)
                    else:
                        gain[port] += alpha * math.sqrt(y + 1.0) - alpha
    for port in range(counts.size):
        largest = 0.0
        for k in range(n_types):
            largest = max(largest, betas[k] * totals[k, port])
        gain[port] *= counts[port]
        overhead[port] = counts[port] * largest
