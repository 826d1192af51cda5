"""Allocation cores: who gets which resources, slot by slot, learnt from what is then seen."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
