"""Sample paths laid out as the store does."""

import numpy as np

from marketsched.mechanisms.posted.failure_table import LANES


def in_blocks(loads, first_row):
    """Lay (paths, rounds) out as the store does: blocks of 64 lanes, a ring of rows."""
    paths, rounds = loads.shape
    blocks = -(-paths // LANES)
    padded = np.zeros((blocks * LANES, rounds), loads.dtype)
    padded[:paths] = loads
    rows = (first_row + np.arange(rounds)) % rounds
    ring = np.zeros((blocks, rounds, LANES), loads.dtype)
    ring[:, rows, :] = padded.reshape(blocks, LANES, rounds).transpose(0, 2, 1)
    return ring, ring.max(axis=(0, 2)).astype(np.int64)
