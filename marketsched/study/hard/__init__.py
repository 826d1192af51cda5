"""Hard instances: birth sequences that a mechanism serves badly."""
