"""The rules: statements of work, menus, launch plans, posted prices, eviction, oracles. Pure."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
