"""Random programs for every public method of a timer or a purgatory, and all programs up to a size."""
