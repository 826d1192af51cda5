"""Streams of randomness of a play: one for each purpose, so that a report moves none of them."""

from __future__ import annotations

import numpy as np

OTHERS, OWNER, MECHANISM = range(3)  # purposes


def stream(seed: int, purpose: int) -> np.random.Generator:
    """Return one of the streams of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))


def stream_of_run(seed: int) -> np.random.Generator:
    """Return the stream that the mechanism of a scenario gets in a run with this seed (`Scenario.setup`)."""
    return np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)[1]
