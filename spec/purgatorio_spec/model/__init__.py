"""A model checker, and small models of the completion of an operation and of the timing wheel."""
