"""A simple timer and a simple purgatory, made of dictionaries, for one thread. Tests compare the results of other
implementations with these two."""
