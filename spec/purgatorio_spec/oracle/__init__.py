"""A simple oracle: a timer and a purgatory made of dictionaries, for one thread. Tests compare other implementations
with the oracle."""
