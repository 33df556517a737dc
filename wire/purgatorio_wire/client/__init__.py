"""A Kafka-compatible broker from outside: messages, connections, the recorder, and the scenes that are played.

`frame` and `message` serve both ends of a connection, and are all that the project's own broker needs of this package.
"""
