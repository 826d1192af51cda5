"""Experiments at scale: many seeded runs, survived interruptions, one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.experiments.reproduced import Reproduced as Reproduced
    from marketsched.experiments.reproducing import reproduce as reproduce
    from marketsched.experiments.sweep_runs import Case as Case
    from marketsched.experiments.sweep_runs import SweepRun as SweepRun
    from marketsched.experiments.sweep_runs import runs_of as runs_of
    from marketsched.experiments.sweep_spec import SweepSpec as SweepSpec
    from marketsched.experiments.sweeping import SweepResult as SweepResult
    from marketsched.experiments.sweeping import sweep as sweep

_LAZY = {
    "reproduced": ("Reproduced",),
    "reproducing": ("reproduce",),
    "sweep_runs": ("Case", "SweepRun", "runs_of"),
    "sweep_spec": ("SweepSpec",),
    "sweeping": ("SweepResult", "sweep"),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
