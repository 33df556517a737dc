"""Judges implementations of others: adapters, subjects, the subject protocol, the pytest plugin, and the kits."""
