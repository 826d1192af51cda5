"""The truthfulness audit: what an owner can gain by misreporting, bounded from above and searched for from below."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
