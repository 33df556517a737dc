"""Small models of the protocols and of the wheel, and the checker that searches them completely."""
