"""The kits for other languages. A kit has a recorder and the subject protocol."""
