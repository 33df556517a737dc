"""Subjects: the timers that are judged, each with the interface of `contract`."""
