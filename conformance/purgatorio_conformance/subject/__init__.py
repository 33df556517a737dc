"""Built-in subjects: timers that Purgatorio drives and judges. Each implements the interface in `contract`."""
