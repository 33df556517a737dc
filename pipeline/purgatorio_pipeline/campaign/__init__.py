"""Campaigns: many explorer and stress jobs, a process each, fanned out over Spark's executors, resumable."""
