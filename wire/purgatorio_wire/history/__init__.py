"""The history of a scene: its requests and responses, and the states of topics, groups and transactions that they
imply."""
