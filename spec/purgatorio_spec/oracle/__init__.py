"""simple oracle: what a timer and a purgatory do, in dictionaries, for one thread; tests compare the clever ones."""
