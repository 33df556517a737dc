"""Writes and reads JSON documents, of result folders (`lake`) and of commands. Dataclasses define the documents.

A value of a wrong type is refused, with its place in the document. Traces and protocol messages have their own parsers,
because users need better error messages for them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from purgatorio_spec.trace.columns import EVENT_SCHEMA

T = TypeVar("T")


class Unreadable(ValueError):
    """A document has an unexpected form. The text has the error and its place in the document."""


def encoded(value: object) -> bytes:
    """The value as JSON. Tables of events are lists of rows. The result has no `##`, which only texts can contain: CI
    systems execute `##vso[` anywhere in a log."""
    return msgspec.json.encode(value, enc_hook=_rows).replace(b"##", rb"#\u0023")


def decoded(document: bytes | str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(document, type=kind, dec_hook=_value)
    except (msgspec.DecodeError, pa.ArrowException) as wrong:
        raise Unreadable(str(wrong)) from None


def fields_of(one: object, names: str, **given: object) -> dict[str, object]:
    """A part of a document, with these fields in this order: each from `given`, else from the attribute of `one`."""
    return {name: given[name] if name in given else getattr(one, name) for name in names.split()}


def _rows(value: object) -> object:
    if isinstance(value, pa.Table):
        return value.to_pylist()
    raise TypeError(f"{type(value).__name__} is of no document")


def _value(kind: type, held: Any) -> object:
    return pa.Table.from_pylist(held, schema=EVENT_SCHEMA) if kind is pa.Table else held
