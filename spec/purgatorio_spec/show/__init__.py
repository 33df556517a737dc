"""How a counterexample is shown to people: the choice of the events, their order, and the text."""
