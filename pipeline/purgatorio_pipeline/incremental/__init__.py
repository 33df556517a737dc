"""A repeated check with the tables of earlier checks: only new or changed files are read."""
