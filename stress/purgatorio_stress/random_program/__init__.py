"""Programs that nobody wrote down: drawn or enumerated over all that a timer, a purgatory, a broker can be asked."""
