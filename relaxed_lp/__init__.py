"""The fractional problem: bounds on the welfare of any schedule. The only room that may import cvxpy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
