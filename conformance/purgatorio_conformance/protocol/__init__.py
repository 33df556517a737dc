"""`purgatorio-subject/1`: drive and record a program in any language that speaks JSON lines.

`driver` is what others use; `message` holds every message as a typed record, from which parser, schema and page derive.
"""
