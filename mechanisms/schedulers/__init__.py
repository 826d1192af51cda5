"""Schedulers that clusters run, without prices, for comparison; none of them is truthful."""
