"""Campaigns: many explorer and stress jobs. Each job has its own process, and a campaign can be resumed."""
