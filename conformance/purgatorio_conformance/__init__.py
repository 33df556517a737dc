"""Judges timers and purgatories of other projects: adapters, subjects, the subject protocol, the pytest plugin, the
kits."""
