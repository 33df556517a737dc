"""Shows a counterexample to people: chooses the events, orders the events, and writes the text."""
