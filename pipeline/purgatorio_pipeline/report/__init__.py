"""What a check says, for people: a summary in the terminal and one self-contained page."""
