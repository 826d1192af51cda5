"""Runs of recurring jobs as a table: what is known of a run is that of the first one, moved to another birth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import TagsButOne
from marketsched.worlds.runs import Law, RunColumns, Runs


@dataclass(frozen=True, eq=False)
class Recurring:
    """The recurring jobs, one entry each."""

    prefix: str  # of their names and owners; then comes the number
    births: NDArray[np.int64]  # of the first run, rounds
    nodes: NDArray[np.int64]
    laws: list[Law]  # that differ: rounds from the birth to the arrival, and of the run
    law_of: NDArray[np.int64]  # which of them each has
    values: NDArray[np.float64]  # credits until the deadline
    deadlines: NDArray[np.int64]  # of the first run, a completion time
    tags: dict[str, NDArray[np.generic] | None]  # shown with each run after ``group``; None: its deadline

    def drawn(self, groups: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw waits and durations of runs of these recurring jobs, rounds; one number of ``rng`` for each."""
        numbers, laws = rng.random(groups.size), self.law_of[groups]
        waits, durations = np.empty(groups.size, np.int64), np.empty(groups.size, np.int64)
        runs = np.split(np.argsort(laws, kind="stable"), np.cumsum(np.bincount(laws, minlength=len(self.laws)))[:-1])
        for (of_law, rounds, probabilities), own in zip(self.laws, runs, strict=True):
            point = np.searchsorted(np.cumsum(probabilities), numbers[own], side="right")
            point = np.minimum(point, rounds.size - 1)  # the sum may end a little below 1
            waits[own], durations[own] = of_law[point], rounds[point]
        return waits, durations


class RecurringRuns(Runs):
    """Runs of recurring jobs in order of birth.

    Parameters
    ----------
    of : Recurring
        The recurring jobs.
    groups, numbers : ndarray of int, shape (n_jobs,)
        Which of them each run is of, and the run's number in its name.
    births, arrivals, durations : ndarray of int, shape (n_jobs,)
        Rounds.
    revealed : bool
        Whether durations are seen at arrival.
    """

    def __init__(
        self,
        of: Recurring,
        groups: NDArray[np.int64],
        numbers: NDArray[np.int64],
        births: NDArray[np.int64],
        arrivals: NDArray[np.int64],
        durations: NDArray[np.int64],
        *,
        revealed: bool,
    ) -> None:
        self._of, self._groups, self._numbers = of, groups, numbers
        for column in (groups, numbers):
            column.flags.writeable = False
        deadlines = of.deadlines[groups] + births - of.births[groups]
        own = (of.nodes[groups], of.values[groups], deadlines, of.law_of[groups])
        super().__init__(RunColumns(births, arrivals, durations, *own), of.laws, revealed=revealed)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self._groups, self._numbers, self.births, self.arrivals, self.durations)
        return _rebuilt, (self._of, *columns, self.revealed)

    @cached_property
    def names(self) -> list[str]:
        """Names of the jobs."""
        prefix, runs = self._of.prefix, zip(self._groups.tolist(), self._numbers.tolist(), strict=True)
        return [f"{prefix}{g}-r{number}" for g, number in runs]

    @cached_property
    def owners(self) -> list[str]:
        """Names of their owners."""
        shared = np.array(self._owner_names, object)  # one string for all runs of a recurring job
        return shared[self._groups].tolist()  # type: ignore[no-any-return]

    @cached_property
    def owner_words(self) -> Any:
        """The same as a table takes them."""
        return _words(self._owner_names, self._groups)

    @property
    def _owner_names(self) -> list[str]:
        return [f"{self._of.prefix}{g}" for g in range(self._of.births.size)]

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return ("group", *self._of.tags)

    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag."""
        if name == "group":
            return self.owner_words[part]
        of_groups, groups = self._of.tags[name], self._groups[part]
        if of_groups is None:
            return self._runs.deadlines[part]
        if of_groups.dtype.kind == "U":
            return _words(of_groups.tolist(), groups)
        return of_groups[groups]

    @cached_property
    def _shared(self) -> dict[int, dict[str, object]]:
        return {}

    def _name(self, place: int) -> tuple[str, str]:
        owner = f"{self._of.prefix}{self._groups[place]}"
        return f"{owner}-r{self._numbers[place]}", owner

    def _tags(self, place: int) -> TagsButOne:
        g = int(self._groups[place])
        if g not in self._shared:
            tags = {tag: 0 if each is None else each[g].item() for tag, each in self._of.tags.items()}
            self._shared[g] = {"group": f"{self._of.prefix}{g}", **tags}
        return TagsButOne(self._shared[g], "deadline", int(self._runs.deadlines[place]))


def _words(distinct: list[str], codes: NDArray[np.int64]) -> Any:
    """Return a column of words that repeat, as pandas keeps strings."""
    import pandas as pd

    return pd.array(distinct, dtype="str").take(codes)


def _rebuilt(*fields: Any) -> RecurringRuns:
    """Unpickle."""
    return RecurringRuns(*fields[:-1], revealed=fields[-1])
