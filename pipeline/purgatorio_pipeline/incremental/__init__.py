"""Incremental checks: only new or changed files of a folder are judged. The other results come from earlier checks."""
