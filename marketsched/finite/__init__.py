"""Finite direct mechanisms: the exact audit, and the best mechanism by linear program."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
