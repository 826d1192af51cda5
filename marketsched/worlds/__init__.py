"""Workloads: jobs with true statements of work and what really happens to them, recorded or drawn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
