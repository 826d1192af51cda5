"""Studies: comparisons, hard instances, learning, sweeps, and the papers' figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.study.papers.reproduced import Reproduced as Reproduced
    from marketsched.study.papers.reproducing import reproduce as reproduce
    from marketsched.study.sweeps.runs import Case as Case
    from marketsched.study.sweeps.runs import SweepRun as SweepRun
    from marketsched.study.sweeps.runs import runs_of as runs_of
    from marketsched.study.sweeps.spec import SweepSpec as SweepSpec
    from marketsched.study.sweeps.sweeping import SweepResult as SweepResult
    from marketsched.study.sweeps.sweeping import sweep as sweep

_LAZY: dict[str, tuple[str, ...]] = {
    "papers.reproduced": ("Reproduced",),
    "papers.reproducing": ("reproduce",),
    "sweeps.runs": (
        "Case",
        "SweepRun",
        "runs_of",
    ),
    "sweeps.spec": ("SweepSpec",),
    "sweeps.sweeping": (
        "SweepResult",
        "sweep",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
