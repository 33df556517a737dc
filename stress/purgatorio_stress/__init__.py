"""Drives implementations and records them: the recorder, the subjects, the explorer, the threaded harness."""
