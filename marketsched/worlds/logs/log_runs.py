"""The runs of a log as the jobs of a market."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.worlds.runs import Law, RunColumns, Runs


class LogRuns(Runs):
    """Runs of a log in order of submission, as its market has them.

    Parameters
    ----------
    runs : RunColumns
        The runs.
    laws : sequence of Law
        What is announced of them.
    revealed : bool
        Whether durations are seen at arrival.
    first : int
        The place of the first one in the log, which its name has.
    users : list of str
        Their owners; empty: not known, and the job is an owner of its own.
    shown : mapping of str to list or ndarray, of n_jobs each
        Tags by name.
    checkpoint : int, optional
        Of each statement.
    """

    def __init__(
        self,
        runs: RunColumns,
        laws: Sequence[Law],
        *,
        revealed: bool,
        first: int,
        users: list[str],
        shown: Mapping[str, list[str] | NDArray[Any]],
        checkpoint: int | None = None,
    ) -> None:
        self._first, self._users, self._shown = first, users, dict(shown)
        super().__init__(runs, laws, revealed=revealed, checkpoint=checkpoint)

    def __reduce__(self) -> tuple[Any, ...]:
        own = {"revealed": self.revealed, "first": self._first, "users": self._users, "shown": self._shown}
        return _rebuilt, (self._runs, self._laws, own | {"checkpoint": self._checkpoint})

    @cached_property
    def names(self) -> list[str]:
        """Names of the jobs."""
        return [f"run-{i}" for i in range(self._first, self._first + len(self))]

    @cached_property
    def owners(self) -> list[str]:
        """Names of their owners."""
        return [user or name for user, name in zip(self._users, self.names, strict=True)]

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return tuple(self._shown)

    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag."""
        return self._shown[name][part]

    def _name(self, place: int) -> tuple[str, str]:
        name = f"run-{self._first + place}"
        return name, self._users[place] or name

    def _tags(self, place: int) -> dict[str, Any]:
        return {name: x[place].item() if isinstance(x, np.ndarray) else x[place] for name, x in self._shown.items()}


def _rebuilt(runs: RunColumns, laws: Sequence[Law], own: dict[str, Any]) -> LogRuns:
    """Unpickle."""
    return LogRuns(runs, laws, **own)
