"""Campaigns: many explorer and stress jobs, each in its own process. An interrupted campaign can be resumed."""
