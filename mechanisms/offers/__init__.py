"""Two offers: posted rates and announced odds for jobs whose durations are hidden."""
