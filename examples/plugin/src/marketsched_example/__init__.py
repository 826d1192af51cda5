"""What a package of your own adds to marketsched: one file for each idea, named in pyproject.toml."""
