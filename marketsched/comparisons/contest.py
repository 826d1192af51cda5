"""The interface of contestants in a comparison on the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import pandas as pd

Tell = Callable[[str], None]  # called with the name of the next step
Found = dict[str, list[Any]]  # of every table of one part of a seed: data frames, or rows
WHOLE_SEED: tuple[str, ...] = ("",)  # the parts of a seed that is played at once


class Contest(Protocol):
    """Who is compared in which scenario: the interface of both kinds for the harness of paired runs."""

    compared: ClassVar[str]
    kind: ClassVar[str]  # of the result
    summed_only: ClassVar[tuple[str, ...]]  # tables that the summary is made of, and that are not kept
    labels: list[str]
    parts: tuple[str, ...]  # names of the parts of a seed, which may be played in different processes
    steps: int  # of one part

    def play(self, seed: int, part: int, tell: Tell) -> Found:
        """Play all contestants in one part of a seed; ``runs`` holds a row of each, ``steps`` counts progress."""
        ...

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row for each that is compared, over all finished seeds."""
        ...

    def about(self, found: Found) -> dict[str, Any]:
        """Return further entries of the manifest, beside those of every comparison."""
        ...
