"""The schedulers that clusters run, without prices: to be compared with, and none of them truthful."""
