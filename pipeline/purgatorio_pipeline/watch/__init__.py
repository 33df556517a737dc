"""Judges runs while they are written, with Spark's Structured Streaming. A run arrives as several files (segments) in a
folder. The checker of complete runs judges each batch."""
