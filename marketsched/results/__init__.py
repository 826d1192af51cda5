"""The results of commands: tables, their provenance, folders, intervals."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # modules: __init__.pyi
