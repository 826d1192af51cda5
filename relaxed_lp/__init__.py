"""The fractional problem: bounds on what any schedule could have earned. The only room that may import cvxpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.relaxed_lp.duality import DualBound as DualBound
    from marketsched.relaxed_lp.duality import dual_bound as dual_bound
    from marketsched.relaxed_lp.duality import dual_value as dual_value
    from marketsched.relaxed_lp.duality import report_bound as report_bound

_LAZY = {"duality": ("DualBound", "dual_bound", "dual_value", "report_bound")}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
