"""What owners gain by lying to the allocation cores: worlds, the search, and the table of gains."""
