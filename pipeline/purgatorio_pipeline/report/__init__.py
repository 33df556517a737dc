"""The reports of a check for people: a summary in the terminal, and one HTML page."""
