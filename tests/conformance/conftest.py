"""The kit for the JVM, compiled once for all tests."""

from conformance.kit_classes import built

__all__ = ["built"]
