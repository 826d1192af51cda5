"""What a person sees: the command line, figures, reports, the dashboard."""
