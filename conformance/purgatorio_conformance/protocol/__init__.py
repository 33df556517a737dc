"""The driver for programs in any language, which speak the protocol `purgatorio-subject/1`.

The driver starts the program, exchanges JSON lines with it, and records the calls. The module `driver` is the interface
for other packages. The module `message` has every message as a typed record. The parser, the JSON Schema and the page
docs/measured/subject-messages.md are made from these records.
"""
