"""The explorer for Python code of others: the code is unmodified, and its threads are tasks. See docs/explorer.md."""
