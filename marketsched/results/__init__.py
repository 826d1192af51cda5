"""What a command leaves: tables, how they came about, folders, intervals."""
