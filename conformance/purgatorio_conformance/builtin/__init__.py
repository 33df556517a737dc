"""The built-in subjects: third-party timers, and the reference. Each is a program that speaks the protocol, or runs in
this process."""
