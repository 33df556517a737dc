"""The kits for other languages: each has a recorder of traces and the subject protocol."""
