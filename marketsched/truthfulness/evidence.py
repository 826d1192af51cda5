"""How often launches fail: by enumeration, or counted on fresh paths, for all alternatives in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.truthfulness.alternatives import Alternatives
from marketsched.truthfulness.paired import FailureCounts

FEW_OUTCOMES = 20_000  # joint outcomes of the earlier jobs up to which enumerating costs less than drawing
AT_ONCE = 16_384  # paths drawn at a time, so that memory does not grow with their number


def exact_failures(view: Inspection, options: Alternatives) -> NDArray[np.float64]:
    """Return the true failure probabilities of all launches, shape (n_widths, n_durations, n_starts).

    Raises
    ------
    TooLargeError
        If there are too many joint outcomes of the earlier jobs.
    """
    ahead = options.first_start - view.now
    columns = options.durations - 1
    longest = int(options.durations[-1])
    tables = [view.exact_failures(int(c), ahead + options.n_starts, longest) for c in options.concurrencies]
    return np.stack([table[ahead:, columns].T for table in tables])


def count_failures(view: Inspection, options: Alternatives, samples: int, rng: np.random.Generator) -> FailureCounts:
    """Count failures of all launches on ``samples`` fresh paths, alone and together with the truthful launch."""
    failing = np.zeros((options.concurrencies.size, options.durations.size, options.n_starts), dtype=np.int64)
    together = np.zeros(options.net.shape, dtype=np.int64)
    for drawn in range(0, samples, AT_ONCE):
        paths = view.fresh_paths(min(AT_ONCE, samples - drawn), rng)
        alone, both = paths.joint_counts(
            options.concurrencies,
            options.first_start,
            options.n_starts,
            options.durations,
            options.anchors,
            options.lengths,
        )
        failing += alone
        together += both
    return FailureCounts(samples, failing, together)
