"""Recorded traces: the table of those that are known, with their columns, and one reader of tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
