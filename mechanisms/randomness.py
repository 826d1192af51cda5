"""Seeds and generators as public functions take them: checked before any work is done."""

from __future__ import annotations

import numpy as np

from marketsched.mechanisms.legal import Whole

LARGEST_SEED = 2**64 - 1  # what a column of a table holds

Rng = int | np.random.Generator | None
"""What is taken wherever a function draws: a seed, a generator, or None for draws that cannot be repeated."""


def checked_seed(seed: object, runs: int = 1) -> int:
    """Return ``seed``, the first of ``runs`` seeds that follow each other, all of them whole numbers in [0, 2^64 - 1].

    Examples
    --------
    >>> checked_seed(3)
    3
    >>> checked_seed(2**64)
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: seed = 18446744073709551616: expected a whole number in [0, ...
    """
    return Whole(0, LARGEST_SEED - (runs - 1)).check("seed", seed)


def generator_of(rng: Rng) -> np.random.Generator:
    """Return a generator as it is, or a new one from a legal seed or ``SeedSequence``; None: from system entropy."""
    if rng is not None and not isinstance(rng, (np.random.Generator, np.random.SeedSequence)):
        rng = Whole(0, LARGEST_SEED).check("rng", rng)
    return np.random.default_rng(rng)


def own_stream(rng: Rng) -> np.random.Generator:
    """Return a generator of one's own: later draws from ``rng`` and from it do not move each other."""
    return generator_of(rng).spawn(1)[0]
