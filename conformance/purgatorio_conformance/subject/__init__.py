"""The built-in subjects that Purgatorio drives and judges: third-party timers, and the reference. Each implements the
interface in `contract`."""
