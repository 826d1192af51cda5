"""The schedule that a log records: why its jobs waited, and in which order they were started."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # modules: __init__.pyi
