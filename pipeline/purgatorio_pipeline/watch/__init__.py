"""Judges runs as they arrive, with Spark's Structured Streaming over a folder of segments. The batch checker judges
each batch."""
