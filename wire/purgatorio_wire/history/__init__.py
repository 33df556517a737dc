"""The history of a scene: requests, responses, and the resulting state of topics, groups and transactions."""
