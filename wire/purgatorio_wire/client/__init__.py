"""A client of a Kafka-compatible broker: messages, connections, the recorder, and the execution of scenes.

The modules `frame` and `message` are for both ends of a connection. Purgatorio's own broker uses only these two modules
of the package.
"""
