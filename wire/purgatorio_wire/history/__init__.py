"""The history of a scene: its requests and responses, and the state of topics, groups and transactions that follows."""
