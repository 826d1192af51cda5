"""The allocation cores OgaSched, ESDP and OPM: scenario sections, worlds, play, results, audits, papers' figures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
