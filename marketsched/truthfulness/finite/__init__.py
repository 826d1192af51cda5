"""Finite direct mechanisms: the exact audit, and the best mechanism by linear program."""
