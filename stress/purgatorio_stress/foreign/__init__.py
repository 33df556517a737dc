"""The explorer for Python that nobody here wrote: unmodified code, its threads as tasks. See docs/explorer.md."""
