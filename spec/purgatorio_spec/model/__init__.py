"""Small models of the completion of an operation and of the wheel, and a checker that searches every state of a
model."""
