"""Readers of recorded traces, one file per format, and the table of the traces that are known."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
