"""Random programs, and all programs up to a size. The programs use every public method of a timer or a purgatory."""
