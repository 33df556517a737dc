"""Runs judged as they arrive: Structured Streaming over a folder of segments, the batch checker inside."""
