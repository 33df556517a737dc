"""Judges runs while they are written, with Spark's Structured Streaming. A run arrives as several files (segments) in a
folder. The code that judges complete runs judges each batch too."""
