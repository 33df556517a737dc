"""The published schemas of `purgatorio-trace/1`, derived from the constants that the validator uses.

`python -m docs.makers.trace_schema` writes both published files anew; a test fails when they are behind.

The JSON Schema describes one line. It cannot say what needs two fields' values or the text of the line itself, so
these are `parse_line`'s alone: `c` is below `i`; `t_call` is not above `t`; an integer written as `1.0` is refused;
text that is not JSON or not UTF-8; an `x_` value or `params` nested too deep; a line longer than `MAX_LINE_BYTES`. What
needs the whole file (order of `i`, a return's call, the count of the end record) no schema of a line can say.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import orjson

from purgatorio_spec.trace import record
from purgatorio_spec.trace.columns import TRACE_SCHEMA
from purgatorio_spec.trace.record import (
    FORMAT,
    FUNCTIONS,
    MAX_INT,
    MIN_INT,
    OF_AN_OPERATION,
    PHASES,
    POINTS,
    WITH_KEYS,
    WITH_STATE,
)

Json = dict[str, object]

JSON_SCHEMA_FILE: Final = Path(record.__file__).with_name("purgatorio-trace-1.schema.json")
ARROW_SCHEMA_FILE: Final = Path(record.__file__).with_name("purgatorio-trace-1.arrow.txt")

_OWN: Final[Json] = {"^x_": {"description": "the producer's own: kept, never interpreted"}}


def json_schema() -> Json:
    """The JSON Schema (draft 2020-12) of one line: a header, an event or an end record."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of {FORMAT}",
        "oneOf": [_header(), _event(), _end()],
    }


def _integer(least: int = MIN_INT) -> Json:
    return {"type": "integer", "minimum": least, "maximum": MAX_INT}


def _or_null(schema: Json) -> Json:
    """Null is the same as absent."""
    return {"anyOf": [schema, {"type": "null"}]}


def _record(kind: str, needed: Json, optional: Json) -> Json:
    return _object({"kind": {"const": kind}, **needed}, optional)


def _object(needed: Json, optional: Json) -> Json:
    return {
        "type": "object",
        "required": list(needed),
        "properties": {**needed, **{name: _or_null(_of(schema)) for name, schema in optional.items()}},
        "patternProperties": _OWN,
        "additionalProperties": False,
    }


def _of(schema: object) -> Json:
    return schema if isinstance(schema, dict) else {}


_STRING: Final[Json] = {"type": "string"}


def _header() -> Json:
    return _record(
        "header",
        {
            "format": {"const": FORMAT},
            "run": _STRING,
            "implementation": _object({"name": _STRING}, {"version": _STRING, "language": _STRING}),
            "profile": _STRING,
            "recorded": {"type": "array", "items": {"enum": list(FUNCTIONS)}},
        },
        {
            "timer": _object(
                {}, {name: _integer(0) for name in ("tick_ns", "wheel_size", "early_ns", "late_ns")}
            ),
            "purge_interval": _integer(0),
            "clock": _object({}, {"id": _STRING, "unit": {"enum": ["ns", ""]}}),
            "params": {"type": "object"},
        },
    )


def _end() -> Json:
    return _record("end", {"events": _integer(0), "dropped": _integer(0)}, {})


def _event() -> Json:
    event = _record(
        "event",
        {
            "i": _integer(0),
            "th": _STRING,
            "t": _integer(),
            "ph": {"enum": list(PHASES)},
            "f": {"enum": list(FUNCTIONS)},
        },
        {
            "id": _STRING,
            "c": _integer(0),
            "keys": {"type": "array", "items": _STRING},
            "delay_ns": _integer(),
            "deadline_t": _integer(),
            "t_call": _integer(),
            "out": _integer(),
            "err": _STRING,
            "state": _object({}, {"watched": _integer(), "delayed": _integer()}),
        },
    )
    event["allOf"] = [
        _if(_f_in(OF_AN_OPERATION), _given("id", _STRING)),
        _if(_ph("ret"), _given("c", {"type": "integer"}), {"properties": {"c": {"type": "null"}}}),
        _if(
            {"allOf": [_ph("call"), _f_in(WITH_KEYS)]},
            _given("keys", {"type": "array", "minItems": 1}),
        ),
        _if(_f_in(POINTS), _ph("at")),
        _if(
            {"allOf": [_f_in(WITH_STATE), {"not": _ph("call")}]},
            {"anyOf": [_given("state", {"type": "object"}), _given("err", _STRING)]},
        ),
    ]
    return event


def _if(condition: Json, then: Json, otherwise: Json | None = None) -> Json:
    return {"if": condition, "then": then, **({} if otherwise is None else {"else": otherwise})}


def _f_in(functions: Iterable[str]) -> Json:
    return _given("f", {"enum": sorted(functions)})


def _ph(phase: str) -> Json:
    return _given("ph", {"const": phase})


def _given(name: str, schema: Json) -> Json:
    return {"required": [name], "properties": {name: schema}}


def json_schema_text() -> str:
    """What the published JSON Schema file holds."""
    return orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode() + "\n"


def arrow_schema_text() -> str:
    """What the published Arrow schema file holds: one column a line, in Arrow's own notation."""
    columns = [
        f"{field.name}: {field.type}{'' if field.nullable else ' not null'}{_note(field.metadata)}"
        for field in TRACE_SCHEMA
    ]
    return f"# Columns of {FORMAT} in Parquet and Arrow; a column that a record lacks is null.\n" + "".join(
        column + "\n" for column in columns
    )


def _note(metadata: dict[bytes, bytes] | None) -> str:
    return "" if not metadata else f"  # {metadata[b'holds'].decode()}"


def main() -> None:
    """Write both published files anew."""
    JSON_SCHEMA_FILE.write_text(json_schema_text(), encoding="utf-8")
    ARROW_SCHEMA_FILE.write_text(arrow_schema_text(), encoding="utf-8")
    print(f"wrote {JSON_SCHEMA_FILE.name} and {ARROW_SCHEMA_FILE.name}")


if __name__ == "__main__":
    main()
