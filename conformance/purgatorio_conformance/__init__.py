"""Drives and judges timers and purgatories of other projects: by built-in adapters, by a protocol for programs in any
language, or by a pytest plugin."""
