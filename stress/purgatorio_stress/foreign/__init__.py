"""The explorer for foreign Python: unmodified code, its threads as tasks. See docs/explorer.md."""
