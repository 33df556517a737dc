"""What the exchanges of a scene show: requests, responses, and the state of topics, groups and transactions."""
