"""Workloads: jobs with true statements of work and what really happens to them, recorded or drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.workloads.google import GoogleParameters as GoogleParameters
    from marketsched.workloads.google import google_recurring as google_recurring
    from marketsched.workloads.google import saturated as saturated
    from marketsched.workloads.learned import learned_laws as learned_laws
    from marketsched.workloads.prediction import PredictionRule as PredictionRule
    from marketsched.workloads.prediction import predict as predict
    from marketsched.workloads.synthetic import SyntheticParameters as SyntheticParameters
    from marketsched.workloads.synthetic import synthetic_pipelines as synthetic_pipelines
    from marketsched.workloads.workload import Workload as Workload

_LAZY = {
    "workload": ("Workload",),
    "prediction": ("PredictionRule", "predict"),
    "google": ("GoogleParameters", "google_recurring", "saturated"),
    "learned": ("learned_laws",),
    "synthetic": ("SyntheticParameters", "synthetic_pipelines"),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
