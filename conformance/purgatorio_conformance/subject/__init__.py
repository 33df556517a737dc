"""Subjects: the timers that get checked, each behind the one Protocol of `contract`."""
