"""The explorer for any Python package. The code of the package does not change. See docs/explorer.md."""
