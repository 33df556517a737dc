"""Subjects: the timers that Purgatorio drives and judges. Each subject implements the interface in `contract`."""
