"""The kits: recorder and protocol for other languages."""
