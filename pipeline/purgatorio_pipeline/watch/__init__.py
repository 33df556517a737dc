"""Judges runs as they arrive: Structured Streaming over a folder of segments, with the batch checker inside."""
