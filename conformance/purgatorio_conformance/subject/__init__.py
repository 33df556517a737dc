"""Subjects: the timers that are judged. Each subject has the interface of the module `contract`."""
