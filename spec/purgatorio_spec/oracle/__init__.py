"""simple oracle: a timer and a purgatory in dictionaries, for one thread; tests compare the real ones with them."""
