"""The subjects that this package has: timers of others and the reference, each behind a program of the protocol or
driven in this process."""
