"""Campaigns: many explorer and stress jobs, a process each, resumable."""
