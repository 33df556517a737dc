"""What other commands left behind, as values: outcomes, kills and verdicts, each from the form it is kept in."""
