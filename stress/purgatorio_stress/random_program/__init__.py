"""Random programs and enumerated programs that use every public method of a timer or a purgatory."""
