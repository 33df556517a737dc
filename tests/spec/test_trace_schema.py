"""The published schemas agree with the validator, and the fast reader never accepts a line that the validator
refuses."""

import copy
import json
from pathlib import Path
from typing import Final

import hypothesis.strategies as st
import jsonschema
import orjson
import pytest
from hypothesis import given, settings

from golden import Golden
from purgatorio_spec.trace import record
from purgatorio_spec.trace.block import parse_block
from purgatorio_spec.trace.columns import TRACE_SCHEMA, event_batch, fields_of
from purgatorio_spec.trace.lines import Line
from purgatorio_spec.trace.parse import Refusal, parse_line
from purgatorio_spec.trace.record import (
    FUNCTIONS,
    MAX_INT,
    MIN_INT,
    PHASES,
    SINCE_2,
    End,
    Event,
)

TRACE: Final = Path(record.__file__).parent
SCHEMA: Final = orjson.loads(TRACE.joinpath("purgatorio-trace-2.schema.json").read_bytes())
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)

Fields = dict[str, object]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 3, MAX_INT, MIN_INT, MAX_INT + 1, MIN_INT - 1]),
    st.sampled_from([0.5, 1e300]),
    st.sampled_from(["", "a", "ns", "call", "ret", "at", "ready", "event", "end", *FUNCTIONS]),
    st.lists(st.sampled_from(["k", "ready", 1, None]), max_size=2),
    st.sampled_from([{}, {"watched": 1}, {"watched": None}, {"watched": "1"}, {"x_w": 1}, {"other": 1}]),
)
"""Values that a broken writer might put into any field."""

EVENTS = st.fixed_dictionaries(
    {
        "kind": st.just("event"),
        "i": st.integers(5, 9),
        "th": st.sampled_from(["w", ""]),
        "t": st.integers(0, 9),
        "ph": st.sampled_from(PHASES),
        "f": st.sampled_from(FUNCTIONS),
    },
    optional={
        "id": st.text(max_size=3),
        "c": st.integers(0, 6),
        "keys": st.lists(st.text(max_size=2), max_size=2),
        "delay_ns": st.integers(MIN_INT, MAX_INT),
        "deadline_t": st.integers(MIN_INT, MAX_INT),
        "t_call": st.integers(0, 9),
        "out": st.sampled_from([0, 1, None]),
        "err": st.just("ValueError"),
        "state": st.sampled_from([{}, {"watched": 1, "delayed": 2}, {"x_w": 1}]),
        "x_mine": VALUES,
    },
)
TURNING: Final = ({"catch_up": "burst"}, {"turn": "next"}, {"turn": None}, {"catch_up": "often"}, {"turn": 1})
HEADERS = st.fixed_dictionaries(
    {
        "kind": st.just("header"),
        "format": st.sampled_from(
            ["purgatorio-trace/1", "purgatorio-trace/2", "purgatorio-trace/2", "purgatorio-trace/3"]
        ),
        "run": st.just("r"),
        "implementation": st.sampled_from(
            [{"name": "n"}, {"name": "n", "version": "1"}, {}, {"name": "n", "q": 1}]
        ),
        "profile": st.just("locked"),
        "recorded": st.lists(st.sampled_from([*FUNCTIONS[:2], "timer_reset", "no_such"]), max_size=2),
    },
    optional={
        "timer": st.sampled_from([{}, {"tick_ns": 1}, {"tick_ns": -1}, {"tick": 1}, *TURNING, None]),
        "purge_interval": st.sampled_from([0, 1000, -1]),
        "clock": st.sampled_from([{}, {"unit": "ns"}, {"unit": "ms"}, {"id": "manual"}]),
        "params": st.sampled_from([{}, {"a": [1.5]}, []]),
        "x_mine": VALUES,
    },
)
ENDS = st.fixed_dictionaries(
    {"kind": st.just("end"), "events": st.integers(-1, 3), "dropped": st.integers(-1, 3)}
)
NAMES = st.sampled_from(
    [
        "kind", "i", "th", "t", "ph", "f", "id", "c", "keys", "delay_ns", "deadline_t", "t_call", "out", "err",
        "state", "run", "timer", "recorded", "params", "format", "events", "dropped", "clock", "unknown", "x_new",
        "x_log_row",
    ]
)  # fmt: skip


@st.composite
def line(draw: st.DrawFn) -> Fields:
    """A record, and in half of the cases one or two fields taken away or set to anything."""
    fields: Fields = copy.deepcopy(draw(st.one_of(EVENTS, EVENTS, HEADERS, ENDS)))
    for name in draw(st.lists(NAMES, max_size=2)):
        if draw(st.booleans()):
            fields.pop(name, None)
        else:
            fields[name] = draw(VALUES)
    return fields


def accepted(text: bytes) -> bool:
    try:
        parse_line(text)
    except Refusal:
        return False
    return True


def beyond_the_schema(fields: Fields) -> bool:
    """The rules that no schema of one line can say: a relation between the values of two fields."""
    i, c, t, t_call = (fields.get(name) for name in ("i", "c", "t", "t_call"))
    return (isinstance(c, int) and isinstance(i, int) and c >= i) or (
        isinstance(t_call, int) and isinstance(t, int) and t_call > t
    )


@settings(max_examples=600, deadline=None)
@given(line())
def test_the_json_schema_agrees_with_the_validator(fields: Fields) -> None:
    """People validate with the published schema in other languages: it must not disagree with the tool."""
    text = _dumps(fields)
    valid = VALIDATOR.is_valid(orjson.loads(text))
    if beyond_the_schema(fields):
        assert valid or not accepted(text)
    else:
        assert valid == accepted(text)


def _dumps(fields: Fields) -> bytes:
    """As JSON; integers beyond 64 bits as well, which orjson does not write."""
    return json.dumps(fields, ensure_ascii=False).encode(errors="surrogatepass")


@settings(max_examples=250, deadline=None)
@given(st.lists(line(), min_size=1, max_size=6))
def test_a_block_has_the_contents_of_its_lines(block: list[Fields]) -> None:
    """The fast way may be suspicious of a good line; it must never accept a bad one or change a value."""
    texts = [_dumps({"kind": fields.get("kind"), **fields}).replace(b'": ', b'":', 1) for fields in block]
    _same(texts)


def _same(texts: list[bytes]) -> None:
    refused: list[int] = []
    held = parse_block(
        "t", [Line(at + 1, text) for at, text in enumerate(texts)], lambda b: refused.append(b.line)
    )
    rows = {row.pop("line"): row for row in held.events.to_pylist()}
    others = dict(held.others)
    for at, text in enumerate(texts, 1):
        if not accepted(text):
            assert at in refused
            continue
        record = parse_line(text)
        if isinstance(record, Event):
            (wanted,) = event_batch([(at, record)]).to_pylist()
            assert {**rows.pop(at), "line": at} == wanted
        else:
            assert others.pop(at) == record
    assert (rows, others) == ({}, {})


GOOD = b'{"kind":"event","i":3,"th":"a","t":1,"ph":"at","f":"ready","id":"x"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace(b'"x"', b'"\xff"'),
        GOOD.replace(b'"x"', b'"\xed\xa0\x80"'),
        GOOD.replace(b'"x"', b'"\\ud800"'),
        GOOD.replace(b'"x"', b'"\x00"'),
        GOOD.replace(b'"x"', b'"\t"'),
        GOOD.replace(b'"at"', b'"ret","c":-1').replace(b'"ready"', b'"try_complete"'),
        GOOD + b"\0",
        GOOD + b"\0garbage",
        GOOD + GOOD,
        GOOD + b"}",
        GOOD[:-1],
        GOOD[:-1] + b",}",
        GOOD[:-1] + b',"out":1.0}',
        GOOD[:-1] + b',"out":01}',
        GOOD[:-1] + b',"out":+1}',
        GOOD[:-1] + b',"out":NaN}',
        GOOD[:-1] + b',"out":true}',
        GOOD[:-1] + b',"out":9223372036854775808}',
        GOOD[:-1] + b',"state":{"watched":1,"other":2}}',
        GOOD[:-1] + b',"keys":["a",null]}',
        GOOD[:-1] + b',"kind":"end"}',
        GOOD[:-1] + b',"x_deep":' + b"[" * 300 + b"]" * 300 + b"}",
        b"\xef\xbb\xbf" + GOOD,
    ],
)
def test_lines_at_which_two_json_readers_differ(text: bytes) -> None:
    """Arrow's reader takes bad UTF-8 and knows nothing of a negative `c`: both got through the fast way once."""
    assert not accepted(text)
    for texts in ([text], [GOOD, text], [text, GOOD]):
        _same(texts)


@settings(max_examples=200, deadline=None)
@given(line())
def test_a_record_survives_being_written(fields: Fields) -> None:
    """A record that was read is written unchanged: every field of all three records, and the fields of the producer."""
    text = _dumps(fields)
    if accepted(text):
        record = parse_line(text)
        assert parse_line(orjson.dumps(fields_of(record))) == record


def test_end_is_not_taken_for_whole() -> None:
    """`dropped` has no default on a line: a writer must say so."""
    assert parse_line(b'{"kind":"end","events":1,"dropped":0}') == End(1)
    assert not accepted(b'{"kind":"end","events":1}')
    assert not VALIDATOR.is_valid({"kind": "end", "events": 1})


def test_the_schema_is_one_and_knows_every_function() -> None:
    """It cannot say what needs two fields' values or the text of the line itself: `parse_line` is the authority."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["function"] == {"enum": list(FUNCTIONS)}
    assert SCHEMA["oneOf"][1]["properties"]["ph"] == {"enum": list(PHASES)}


def test_the_schema_of_version_one_stays() -> None:
    """A validation with this schema validates version 1, without later additions."""
    old = orjson.loads(TRACE.joinpath("purgatorio-trace-1.schema.json").read_bytes())
    known = set(old["$defs"]["function"]["enum"])
    assert known == set(FUNCTIONS) - SINCE_2
    header: Fields = {"kind": "header", "format": "purgatorio-trace/1", "run": "r"}
    header |= {"implementation": {"name": "n"}}
    header |= {"profile": "timer", "recorded": ["timer_add"]}
    newer: list[Fields] = [
        {"recorded": ["timer_reset"]},
        {"timer": {"turn": "next"}},
        {"timer": {"catch_up": "burst"}},
    ]
    for validator in (VALIDATOR, jsonschema.Draft202012Validator(old)):
        assert validator.is_valid(header)
        assert not any(validator.is_valid(header | one) for one in newer)
    for one in newer:
        assert not accepted(_dumps(header | one))
        record = parse_line(_dumps(header | one | {"format": "purgatorio-trace/2"}))
        assert fields_of(record)["format"] == "purgatorio-trace/2"
    assert fields_of(parse_line(_dumps(header)))["format"] == "purgatorio-trace/1"


def test_the_columns_are_published(golden: Golden) -> None:
    text = f"# Columns of {record.FORMAT} in Parquet and Arrow; a column that a record lacks is null.\n"
    for field in TRACE_SCHEMA:
        holds = f"  # {field.metadata[b'holds'].decode()}" if field.metadata else ""
        text += f"{field.name}: {field.type}{'' if field.nullable else ' not null'}{holds}\n"
    golden(str(TRACE / "purgatorio-trace-2.arrow.txt"), text)
