"""Why a job waited, what would have changed it, and whether its payment is right."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # modules: __init__.pyi
