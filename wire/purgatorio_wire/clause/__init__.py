"""The clauses of the wire, a module a subject; each yields a row an occasion."""
