"""Built-in scenarios of the allocation cores, as YAML files."""
