"""The explorer for unchanged Python packages of others. See docs/explorer.md."""
