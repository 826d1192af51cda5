"""Posted-price mechanisms with eviction: Algorithms 1-3 of the paper and their oracles."""
