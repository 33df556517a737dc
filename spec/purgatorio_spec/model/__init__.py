"""Small models of the completion protocols and of the wheel, and a checker that searches every state of a model."""
