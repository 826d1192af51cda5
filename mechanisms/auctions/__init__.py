"""What a user would compare the truthful mechanism with."""
