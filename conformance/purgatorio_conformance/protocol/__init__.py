"""`purgatorio-subject/1`: drives and records a program in any language. The program exchanges JSON lines with the
driver.

`driver` is the interface for other packages. `message` has every message as a typed record. The parser, the JSON schema
and the page docs/measured/subject-messages.md are derived from these records.
"""
