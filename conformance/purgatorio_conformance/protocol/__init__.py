"""The protocol `purgatorio-subject/1`: the driver starts a program in any language, exchanges JSON lines with it, and
records the calls.

`driver` is the interface for other packages. `message` has every message as a typed record, from which the parser, the
JSON schema and the page docs/measured/subject-messages.md are derived.
"""
