"""Mechanisms compared on the same jobs, and the search for the jobs a mechanism does worst on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # modules: __init__.pyi
