"""Views and figures of the cores' results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # modules: __init__.pyi
