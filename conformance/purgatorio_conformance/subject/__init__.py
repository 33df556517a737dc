"""Built-in subjects: third-party timers, and the reference, which Purgatorio drives and judges. Each implements the
interface in `contract`."""
