"""The fractional problem: bounds on what any schedule could have earned. The only room that may import cvxpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.relaxed_lp.bounds import Bound as Bound
    from marketsched.relaxed_lp.bounds import law_bound as law_bound
    from marketsched.relaxed_lp.bounds import offline_bound as offline_bound
    from marketsched.relaxed_lp.bounds import plan_bound as plan_bound
    from marketsched.relaxed_lp.bounds import realised_bound as realised_bound
    from marketsched.relaxed_lp.duality import DualBound as DualBound
    from marketsched.relaxed_lp.duality import dual_bound as dual_bound
    from marketsched.relaxed_lp.duality import dual_value as dual_value
    from marketsched.relaxed_lp.duality import report_bound as report_bound
    from marketsched.relaxed_lp.hindsight import Optimum as Optimum
    from marketsched.relaxed_lp.hindsight import hindsight_optimum as hindsight_optimum
    from marketsched.relaxed_lp.packing import PackingProgram as PackingProgram
    from marketsched.relaxed_lp.packing import PackingSolution as PackingSolution
    from marketsched.relaxed_lp.stochastic import StochasticChoice as StochasticChoice
    from marketsched.relaxed_lp.stochastic import StochasticPricing as StochasticPricing
    from marketsched.relaxed_lp.tasks import Tasks as Tasks
    from marketsched.relaxed_lp.tasks import tasks_of_jobs as tasks_of_jobs
    from marketsched.relaxed_lp.tasks import tasks_of_laws as tasks_of_laws
    from marketsched.relaxed_lp.tasks import tasks_of_plans as tasks_of_plans
    from marketsched.relaxed_lp.tasks import tasks_of_reports as tasks_of_reports
    from marketsched.relaxed_lp.unit_allocation import UnitAllocation as UnitAllocation
    from marketsched.relaxed_lp.unit_allocation import fractional_unit_allocation as fractional_unit_allocation

_LAZY: dict[str, tuple[str, ...]] = {
    "bounds": (
        "Bound",
        "law_bound",
        "offline_bound",
        "plan_bound",
        "realised_bound",
    ),
    "duality": (
        "DualBound",
        "dual_bound",
        "dual_value",
        "report_bound",
    ),
    "hindsight": (
        "Optimum",
        "hindsight_optimum",
    ),
    "packing": (
        "PackingProgram",
        "PackingSolution",
    ),
    "stochastic": (
        "StochasticChoice",
        "StochasticPricing",
    ),
    "tasks": (
        "Tasks",
        "tasks_of_jobs",
        "tasks_of_laws",
        "tasks_of_plans",
        "tasks_of_reports",
    ),
    "unit_allocation": (
        "UnitAllocation",
        "fractional_unit_allocation",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
