"""Random and enumerated programs over all calls of a timer or a purgatory."""
