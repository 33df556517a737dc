"""Shows a counterexample as text: chooses the events and arranges them in a column for each thread."""
