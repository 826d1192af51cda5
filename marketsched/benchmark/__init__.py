"""A benchmark that others can enter: the welfare of a mechanism, and the gain from lying to it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
