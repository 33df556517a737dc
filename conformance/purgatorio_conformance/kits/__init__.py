"""The kits: a recorder and the subject protocol for other languages."""
