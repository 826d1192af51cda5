"""Finite direct mechanisms: finitely many types and outcomes, so that every question about them has an exact answer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
