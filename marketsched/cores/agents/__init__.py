"""Owners of jobs and ports at the cores, and the games they play."""
