"""Findings about one policy over one inventory: one file a rule, one row a file in `table`."""
