"""Menus at arrival that are kept, so that a check can compare them with those after another report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import JobId


class KeptMenus(ArrivalMarket):
    """A market at arrival that keeps menus; a subclass puts them into ``_menus`` where `_kept` is true."""

    _menus: dict[JobId, Any] | None = None
    _looked_at: frozenset[JobId] | None = None  # the jobs whose menus are kept; None: all

    def keep_menus(self, jobs: Iterable[JobId] | None = None) -> None:
        """Keep what these jobs face at arrival, for `menu_at_arrival`, and nothing of others; None: of every job."""
        wanted, kept = None if jobs is None else frozenset(jobs), self._menus or {}
        self._menus = {job: menu for job, menu in kept.items() if wanted is None or job in wanted}
        self._looked_at = wanted

    def menu_at_arrival(self, job: JobId) -> Any:
        """Return what ``job`` faced when it arrived, if menus were kept.

        Raises
        ------
        EventError
            If nothing was kept for the job.
        """
        if self._menus is None or job not in self._menus:
            raise EventError(f"menu of {job!r}: expected a job that has been served, and keep_menus before")
        return self._menus[job]

    def _kept(self, job: JobId) -> bool:
        return self._menus is not None and (self._looked_at is None or job in self._looked_at)
