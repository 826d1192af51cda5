"""User-facing output: the command line, figures, reports, the dashboard."""
