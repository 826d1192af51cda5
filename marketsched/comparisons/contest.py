"""The interface of contestants in a comparison on the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import pandas as pd

Tell = Callable[[str], None]  # called with the name of the next step
Found = dict[str, list[Any]]  # of every table of one seed: data frames, or rows


class Contest(Protocol):
    """Who is compared in which scenario: the interface of both kinds for the harness of paired runs."""

    compared: ClassVar[str]
    kind: ClassVar[str]  # of the result
    summed_only: ClassVar[tuple[str, ...]]  # tables that the summary is made of, and that are not kept
    labels: list[str]
    steps: int

    def play(self, seed: int, tell: Tell) -> Found:
        """Play all contestants in the world of one seed; ``runs`` holds a row of each, ``steps`` counts progress."""
        ...

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row for each that is compared, over all finished seeds."""
        ...

    def about(self, found: Found) -> dict[str, Any]:
        """Return further entries of the manifest, beside those of every comparison."""
        ...
