"""Results whose summary has one row for each thing that was compared, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas as pd

    from marketsched.config.scenario import Scenario


class Summarised:
    """Base of results with a scenario, a ``summary``, ``meta``, and whether they are ``complete``."""

    __slots__ = ()

    compared: ClassVar[str] = "policies"  # what the rows of the summary are

    scenario: Scenario  # of the subclasses, as the next three
    summary: pd.DataFrame
    meta: dict[str, Any]
    complete: bool

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of ``summary``, one dictionary each."""
        return [{str(key): value for key, value in row.items()} for row in self.summary.to_dict(orient="records")]

    def to_dict(self) -> dict[str, Any]:
        """Return summary and meta as plain data, NaN and infinities as None."""
        from marketsched.results.output import plain

        about = {"scenario": self.scenario.name, "complete": self.complete}
        found: dict[str, Any] = plain({**about, self.compared: self.records(), "meta": self.meta})
        return found
