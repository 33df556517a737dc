"""The history of a scene: requests, responses, and the state of topics, groups and transactions that follows from
them."""
