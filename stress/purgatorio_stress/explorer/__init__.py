"""The explorer: a scheduler that runs the reference's own code under many interleavings. The scheduler replaces the
locks and shared values of `purgatorio.sync`."""
