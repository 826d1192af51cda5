"""Slurm: its commands, a real cluster of it on this machine, and logs of jobs that are played through it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names: __init__.pyi
