"""Scenes: sequences of requests to a broker. Together the scenes give each clause an occasion (a chance to fail)."""
