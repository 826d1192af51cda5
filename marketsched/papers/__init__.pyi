from .reproducing import reproduce as reproduce
