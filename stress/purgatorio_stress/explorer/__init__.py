"""The explorer: the reference's own code, run through its interleavings by a scheduler under the sync seam."""
