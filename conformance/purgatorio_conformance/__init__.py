"""Judges timers and purgatories of other projects, with adapters, a protocol for programs in any language, and a pytest
plugin.
"""
