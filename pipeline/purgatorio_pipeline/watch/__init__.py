"""Judges runs while they are written, with Spark's Structured Streaming. A run arrives as several files (segments) in a
folder, or as messages of Kafka. The fast check continues in each batch of new events."""
