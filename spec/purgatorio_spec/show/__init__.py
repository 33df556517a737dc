"""How a broken promise is shown to people: which events, in which order, in which words."""
