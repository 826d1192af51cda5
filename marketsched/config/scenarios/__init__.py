"""YAML files of the built-in scenarios."""
