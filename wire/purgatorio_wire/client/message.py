"""Messages of the Kafka protocol in three forms: bytes, typed values of `kio`, and plain JSON values.

`kio` has a frozen dataclass for each message and version, generated from Kafka's own definitions. This module encodes
and decodes these dataclasses with their headers, and converts them to and from plain values with Kafka's field names in
snake case (times end in `_ms`). One plain value serves all versions of a message: `entity_of` leaves out fields that a
version does not have, and uses defaults for missing fields.

A plain value does not have the bytes of record batches: `plain` gives a summary of the batches instead.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.request_header.v1.header import RequestHeader as RequestHeader1
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64Timedelta
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from purgatorio_wire.client.record_batch import batches

API_NAMES: Final[Mapping[int, str]] = api_key_map
"""The name of each API by its key: `fetch`, `join_group`, ..."""

Plain = dict[str, object]
E = TypeVar("E", bound=Entity)


class MessageBroken(ValueError):
    """The payload is no message of the expected API and version."""


class NewerMessage(MessageBroken):
    """The message has an error code or a tagged field that is newer than the library. This is no fault of the peer."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    api: int
    version: int
    correlation: int
    client: str | None


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A decoded request: its header, and the typed body of its version."""

    head: RequestHead
    body: RequestPayload


@dataclass(frozen=True, slots=True)
class DecodedResponse:
    """A decoded response. `left`: the number of bytes after the body, 0 in a valid response."""

    correlation: int
    body: ResponsePayload
    left: int


def versions_of(api: int) -> range:
    """The supported versions of an API. Empty for an unknown API."""
    known = [
        version
        for version, kinds in schema_name_map.get(api_key_map.get(api, ""), {}).items()
        if EntityType.request in kinds
    ]
    return range(min(known), max(known) + 1) if known else range(0)


def request_payload(request: RequestPayload, correlation: int, client: str | None) -> bytes:
    """A request with its header. `frame.framed` adds the length."""
    with io.BytesIO() as out:
        header = request.__header_schema__(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=i32(correlation),
            client_id=client,
        )
        _write(out, header)
        _write(out, request)
        return out.getvalue()


def answer_payload(answer: ResponsePayload, correlation: int) -> bytes:
    """A response with its header, for a broker."""
    with io.BytesIO() as out:
        _write(out, answer.__header_schema__(correlation_id=i32(correlation)))
        _write(out, answer)
        return out.getvalue()


def read_request_head(payload: bytes) -> RequestHead:
    """The header, which has one format in all versions. Raises MessageBroken if it is invalid."""
    header, _ = _read(RequestHeader1, payload, 0)
    return RequestHead(
        header.request_api_key, header.request_api_version, header.correlation_id, header.client_id
    )


def read_request(payload: bytes) -> DecodedRequest:
    """Decode a request, for a broker. Raises MessageBroken for an unknown API or version, or invalid bytes."""
    head = read_request_head(payload)
    try:
        schema = _schema(head.api, head.version, EntityType.request)
    except (UnknownAPIKey, UnknownEntity) as unknown:
        raise MessageBroken(f"API {head.api} version {head.version} is not known here") from unknown
    _, size = _read(cast(type[Entity], schema.__header_schema__), payload, 0)
    body, _ = _read(schema, payload, size)
    return DecodedRequest(head, cast(RequestPayload, body))


def read_answer(api: int, version: int, payload: bytes) -> DecodedResponse:
    """Decode a response to a request of this API and version. Raises MessageBroken for invalid bytes."""
    schema = _schema(api, version, EntityType.response)
    header, size = _read(cast(type[Entity], schema.__header_schema__), payload, 0)
    body, used = _read(schema, payload, size)
    correlation: int = getattr(header, "correlation_id")  # noqa: B009 # every response header has it, no Protocol says so
    return DecodedResponse(correlation, cast(ResponsePayload, body), len(payload) - size - used)


def plain(entity: object) -> Plain:
    """A typed message as JSON values with Kafka's names. Batches become offsets, counts and sizes."""
    out: Plain = {}
    for name, called, convert in _readers(cast(type[Entity], type(entity))):
        value = getattr(entity, name)
        out[called] = None if value is None else convert(value)
    return out


def entity_of(api: int, version: int, kind: EntityType, values: Mapping[str, object]) -> Entity:
    """The typed request or response (`kind`) with these plain values. Fields that the version does not have are left
    out. A missing value is the default, or empty."""
    return _build(_schema(api, version, kind), values)


@cache
def _schema(api: int, version: int, kind: EntityType) -> type[RequestPayload] | type[ResponsePayload]:
    load = load_request_schema if kind is EntityType.request else load_response_schema
    return load(api, version)


@cache
def _fields(schema: type[Entity]) -> tuple[tuple[str, str, type[Entity] | None], ...]:
    """Each field's name, Kafka type (`entity` for a nested type, with the prefix `[]` for arrays) and nested type."""
    hints = get_type_hints(schema)
    found: list[tuple[str, str, type[Entity] | None]] = []
    for one in dataclasses.fields(schema):
        nested, array = _nested(hints[one.name])
        kind = "entity" if nested is not None else str(one.metadata["kafka_type"])
        found.append((one.name, f"[]{kind}" if array else kind, nested))
    return tuple(found)


def _nested(hint: object) -> tuple[type[Entity] | None, bool]:
    """The dataclass inside a field's type, and whether it is an array."""
    array = False
    for part in (hint, *get_args(hint)):
        inner = get_args(part)
        if Ellipsis in inner:
            array = True
            part = inner[0]
        if dataclasses.is_dataclass(part) and isinstance(part, type):
            return cast(type[Entity], part), array
    return None, array


def _plain_name(name: str, kind: str) -> str:
    return f"{name}_ms" if kind.startswith(("timedelta", "datetime")) else name


_MS: Final = datetime.timedelta(milliseconds=1)
_EMPTY: Final[dict[str, object]] = {
    "string": "", "bytes": b"", "bool": False, "float64": 0.0, "error_code": ErrorCode.none,
    "uuid": None, "records": None, "datetime_i64": None,
    "timedelta_i32": i32Timedelta.parse(datetime.timedelta(0)),
    "timedelta_i64": i64Timedelta.parse(datetime.timedelta(0)),
}  # fmt: skip
Convert = Callable[[Any], object]
"""Converts a value that is not None. The field's Kafka type determines its type."""
_TO_PLAIN: Final[Mapping[str, Convert]] = {
    "entity": lambda value: plain(value), "error_code": lambda value: int(value.value), "uuid": str, "bytes": bytes.hex,
    "records": lambda value: [one.plain() for one in batches(value)],
    **dict.fromkeys(("timedelta_i32", "timedelta_i64"), lambda value: round(value / _MS)),
    "datetime_i64": lambda value: round(value.timestamp() * 1000),
}  # fmt: skip
_FROM_PLAIN: Final[Mapping[str, Convert]] = {
    "error_code": ErrorCode,
    "uuid": lambda value: uuid.UUID(value) if isinstance(value, str) else value,
    "bytes": lambda value: bytes.fromhex(value) if isinstance(value, str) else value,
    "datetime_i64": lambda value: datetime.datetime.fromtimestamp(value / 1000, datetime.UTC),
    **dict.fromkeys(("timedelta_i32", "timedelta_i64"), lambda value: datetime.timedelta(milliseconds=value)),
}


def _same(value: object) -> object:
    return value


def _of_each(convert: Convert) -> Convert:
    return lambda values: [convert(one) for one in values]


@cache
def _readers(schema: type[Entity]) -> tuple[tuple[str, str, Convert], ...]:
    """Each field's name, its name in plain values, and the conversion to a plain value."""
    out: list[tuple[str, str, Convert]] = []
    for name, kind, _ in _fields(schema):
        convert = _TO_PLAIN.get(kind.removeprefix("[]"), _same)
        out.append((name, _plain_name(name, kind), _of_each(convert) if kind.startswith("[]") else convert))
    return tuple(out)


@cache
def _builders(schema: type[Entity]) -> tuple[tuple[str, str, Convert, object], ...]:
    """Each field's name, its name in plain values, the conversion from a plain value, and the default."""
    defaults = {one.name: one.default for one in dataclasses.fields(schema)}
    out: list[tuple[str, str, Convert, object]] = []
    for name, kind, nested in _fields(schema):
        array, bare = kind.startswith("[]"), kind.removeprefix("[]")
        convert = _FROM_PLAIN.get(bare, _same) if nested is None else partial(_build, nested)
        default = defaults[name]
        if default is dataclasses.MISSING:
            default = () if array else _EMPTY.get(kind, i16(0))
        out.append((name, _plain_name(name, kind), _of_each(convert) if array else convert, default))
    return tuple(out)


def _build(schema: type[Entity], values: Mapping[str, object]) -> Entity:
    given: dict[str, object] = {}
    for name, called, convert, default in _builders(schema):
        value = values.get(called, _ABSENT)
        given[name] = default if value is _ABSENT else None if value is None else convert(value)
    return schema(**given)


_ABSENT: Final = object()


def _write(out: io.BytesIO, entity: Entity) -> None:
    entity_writer(type(entity))(out, entity)


def _read(schema: type[E], payload: bytes, offset: int) -> tuple[E, int]:
    # The reader raises several exceptions for invalid bytes. Callers get only MessageBroken.
    try:
        return entity_reader(schema)(payload, offset)
    except ValueError as broken:
        if "is not a valid ErrorCode" in str(broken):
            raise NewerMessage(str(broken)) from broken
        raise MessageBroken(f"{schema.__name__} v{schema.__version__}: {broken}") from broken
    except KeyError as unknown:
        # The protocol requires to skip unknown tagged fields. The library raises KeyError instead.
        raise NewerMessage(f"{schema.__name__} v{schema.__version__}: {unknown}") from unknown
    except (SerialError, OverflowError, MemoryError, IndexError, TypeError) as broken:
        said = str(broken) or type(broken).__name__
        raise MessageBroken(f"{schema.__name__} v{schema.__version__}: {said}") from broken
