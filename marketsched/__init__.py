"""marketsched: truthful markets for statements of work, with agents."""
