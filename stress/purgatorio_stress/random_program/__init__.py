"""Random and enumerated programs over all calls of a timer, a purgatory or a broker."""
