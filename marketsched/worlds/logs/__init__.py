"""Logs of jobs as markets: any table of runs, whatever file it came from."""
