"""The protocol `purgatorio-subject/1`: the driver runs a program in any language, and exchanges JSON lines with it. The
driver records the calls.

`driver` is the interface for other packages. `message` has every message as a typed record. The parser, the JSON schema
and the page docs/measured/subject-messages.md are derived from these records.
"""
