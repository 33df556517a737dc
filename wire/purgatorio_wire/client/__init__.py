"""A client of a Kafka-compatible broker: messages, connections and the recorder. Purgatorio's own broker uses only
`frame` and `message`."""
