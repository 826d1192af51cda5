"""Workloads: jobs with true statements of work and what really happens to them, recorded or drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.worlds.google import GoogleParameters as GoogleParameters
    from marketsched.worlds.google import google_recurring as google_recurring
    from marketsched.worlds.google import saturated as saturated
    from marketsched.worlds.learned import learned_laws as learned_laws
    from marketsched.worlds.prediction import PredictionRule as PredictionRule
    from marketsched.worlds.prediction import predict as predict
    from marketsched.worlds.synthetic import SyntheticParameters as SyntheticParameters
    from marketsched.worlds.synthetic import synthetic_pipelines as synthetic_pipelines
    from marketsched.worlds.workload import Workload as Workload

_LAZY: dict[str, tuple[str, ...]] = {
    "google": (
        "GoogleParameters",
        "google_recurring",
        "saturated",
    ),
    "learned": ("learned_laws",),
    "prediction": (
        "PredictionRule",
        "predict",
    ),
    "synthetic": (
        "SyntheticParameters",
        "synthetic_pipelines",
    ),
    "workload": ("Workload",),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
