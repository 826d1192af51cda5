"""Several markets side by side: sites of a company or partitions of a cluster, each with jobs and prices of its own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
