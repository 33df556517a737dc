"""Parses a line of a trace into a record, or lines into a batch of events. Refuses a wrong line with a reason.

Traces are untrusted input. Nothing is evaluated, and every size is bounded. A refusal names the field, the expected
value and the remedy. The functions of this module see one line. Other modules check the whole file. `trace.reader`
checks the order of the record numbers `i`, and the count in the end record. `judge.context` checks that each return has
a call.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final, TypeVar, get_type_hints

import orjson
import pyarrow as pa

from purgatorio_spec.trace.columns import event_batch
from purgatorio_spec.trace.lines import Line
from purgatorio_spec.trace.record import (
    CATCH_UP,
    FORMAT,
    FORMAT_1,
    FUNCTIONS,
    MAX_INT,
    MAX_LINE_BYTES,
    MIN_INT,
    OF_AN_OPERATION,
    PHASES,
    POINTS,
    SINCE_2,
    TURNS,
    WITH_KEYS,
    WITH_STATE,
    End,
    Event,
    Header,
    Phase,
    Record,
    State,
    names_of,
)

_PHASE: Final[Mapping[object, Phase]] = {phase: phase for phase in PHASES}
_FUNCTION: Final[Mapping[object, str]] = {f: f for f in FUNCTIONS}
KEPT_TEXT_BYTES: Final = 200
Fields = dict[str, object]
T = TypeVar("T")


# Not frozen: an exception's traceback and context are assigned to it on its way.
@dataclass(eq=False)
class Refusal(Exception):
    """The reason why a line is no record: the field (`$` for the whole line), the error, and the remedy."""

    field: str
    why: str
    hint: str

    def __str__(self) -> str:
        return f"field {self.field!r}: {self.why}; {self.hint}"


def shown(value: object) -> str:
    """A value for an error text, cut to a maximum length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_line(line: bytes) -> Record:
    try:
        fields: object = orjson.loads(line)
        if not isinstance(fields, dict):
            kind = type(fields).__name__
            raise Refusal("$", f"a JSON {kind}, not an object", "write one JSON object a line")
        if line.count(b'":') != _names(fields) or _SPACED.search(line):
            _refuse_repeated(line)
        return parse_fields(fields)
    except orjson.JSONDecodeError as bad:
        raise _not_json(line, bad) from None
    except RecursionError:
        raise Refusal("$", "nested too deep", "keep it under 200 levels") from None


_SPACED: Final = re.compile(rb'"\s+:')


def _names(value: object) -> int:
    """The number of names in a JSON value. If a line has more colons after quotes, a name may be there twice."""
    if isinstance(value, dict):
        return len(value) + sum(map(_names, value.values()))
    return sum(map(_names, value)) if isinstance(value, list) else 0


def _refuse_repeated(line: bytes) -> None:
    """Refuse an object with a repeated name, because readers differ in the value that they use."""

    def once(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Refusal(name, "stands twice in one object", "write each field once")
            seen.add(name)

    json.loads(line, object_pairs_hook=once)


def _not_json(line: bytes, bad: orjson.JSONDecodeError) -> Refusal:
    """The error in the text. The most likely reason is tested first."""
    start = shown(line[:80].decode(errors="replace"))
    if line.startswith(BOM_UTF8):
        return Refusal(
            "$", f"a byte order mark before {start}", "write UTF-8 without a byte order mark (BOM)"
        )
    try:
        line.decode()
    except UnicodeDecodeError as wrong:
        byte = f"byte {line[wrong.start]:#04x} at column {wrong.start + 1}"
        return Refusal(
            "$", f"not UTF-8 ({byte}): {start}", "write UTF-8; a single byte like this is often Latin-1"
        )
    cut = "; if the writer was killed, drop the cut line" if "unexpected end" in bad.msg else ""
    return Refusal(
        "$", f"not JSON ({bad.msg} at column {bad.colno}): {start}", f"write one JSON object a line{cut}"
    )


def parse_fields(fields: Fields) -> Record:
    """The record of one decoded JSON object. Raises `Refusal`."""
    kind = fields.get("kind")
    if kind == "event":
        return _event(fields)
    if kind == "header":
        return _header(fields)
    if kind == "end":
        return _end(fields)
    raise Refusal("kind", f"{shown(kind)} is none of header, event, end", "set kind on every record")


def integer_field(
    fields: Mapping[str, object], name: str, least: int = MIN_INT, where: str = ""
) -> int | None:
    """An integer from `least` up to 2**63-1. None for an absent field. Raises `Refusal`."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is float and value.is_integer() and abs(value) > MAX_INT:
        # The reader makes a float of an integer that is too large for it.
        value = int(value)
    if type(value) is not int:
        raise Refusal(
            where + name,
            f"{shown(value)} is a {type(value).__name__}",
            "write an integer (booleans as 0 or 1)",
        )
    if not least <= value <= MAX_INT:
        raise Refusal(
            where + name,
            f"{shown(value)} is outside {'-2**63' if least == MIN_INT else least}..2**63-1",
            "write a signed 64-bit integer",
        )
    return value


def _needed(value: T | None, name: str) -> T:
    if value is None:
        raise Refusal(name, "missing", f"this record needs {name!r}")
    return value


def string_field(fields: Mapping[str, object], name: str, where: str = "") -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refusal(where + name, f"{shown(value)} is a {type(value).__name__}", "write a string")
    return value


def _strings(fields: Fields, name: str) -> tuple[str, ...] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Refusal(
            name, f"{shown(value)} is not a list of strings", 'write a list of strings, as ["k1","k2"]'
        )
    return tuple(value)


def object_field(fields: Mapping[str, object], name: str) -> Fields | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Refusal(name, f"{shown(value)} is not an object", "write a JSON object")
    return value


def _own(fields: Fields, *objects: str) -> Fields | None:
    """The producer's own fields: the `x_...` of the record, and those of its objects under both names."""
    own = {name: value for name, value in fields.items() if name.startswith("x_")}
    for outer in objects:
        inside = object_field(fields, outer) or {}
        own |= {f"{outer}.{name}": value for name, value in inside.items() if name.startswith("x_")}
    for name, value in own.items():
        _writable(name, value)
    return own or None


def _writable(name: str, value: object) -> None:
    """Refuse JSON with hundreds of nested levels, because it could be read, but not written again."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise Refusal(name, "nested too deep to be written again", "keep it under 200 levels") from None


def _only(fields: Fields, known: Collection[str], where: str = "") -> None:
    for name in fields:
        if name not in known and not name.startswith("x_"):
            raise Refusal(
                where + name,
                "unknown field",
                "take it out, or name it x_... to have it kept and not interpreted",
            )


_EVENT_FIELDS: Final = frozenset(("kind", *names_of(Event)))
_BESIDE: Final[Mapping[object, tuple[str, ...]]] = {Header: ("kind", "format"), End: ("kind",)}
_STATE_FIELDS: Final = frozenset(names_of(State))


def _named(names: Mapping[object, T], value: object) -> T | None:
    """The name that equals a value, or None. A list or an object is no name."""
    return names.get(value) if isinstance(value, str) else None


def _event(fields: Fields) -> Event:
    _only(fields, _EVENT_FIELDS)
    phase = _named(_PHASE, fields.get("ph"))
    if phase is None:
        raise Refusal("ph", f"{shown(fields.get('ph'))} is none of call, ret, at", "set ph to one of them")
    f = _named(_FUNCTION, fields.get("f"))
    if f is None:
        raise Refusal(
            "f",
            f"{shown(fields.get('f'))} is not a function of this format",
            f"use one of {', '.join(FUNCTIONS)}",
        )
    state = object_field(fields, "state")
    event = Event(
        i=_needed(integer_field(fields, "i", 0), "i"),
        th=_needed(string_field(fields, "th"), "th"),
        t=_needed(integer_field(fields, "t"), "t"),
        ph=phase,
        f=f,
        id=string_field(fields, "id"),
        c=integer_field(fields, "c", 0),
        keys=_strings(fields, "keys"),
        delay_ns=integer_field(fields, "delay_ns"),
        deadline_t=integer_field(fields, "deadline_t"),
        t_call=integer_field(fields, "t_call"),
        out=integer_field(fields, "out"),
        err=string_field(fields, "err"),
        state=None if state is None else _state(state),
        x=_own(fields, "state"),
    )
    _check_event(event)
    return event


def _check_event(event: Event) -> None:
    """Check the rules of a single event, except the types of its fields."""
    if event.f in OF_AN_OPERATION and event.id is None:
        raise Refusal("id", "missing", f"every event of {event.f} names its operation or task")
    if event.ph == "ret" and event.c is None:
        raise Refusal("c", "missing", "a return names the i of its call")
    if event.ph == "ret" and event.c is not None and event.c >= event.i:
        raise Refusal("c", f"{event.c} is not below i = {event.i}", "a return comes after its call")
    if event.ph != "ret" and event.c is not None:
        raise Refusal("c", f"given on ph = {event.ph}", "only a return has c")
    if event.ph == "call" and event.f in WITH_KEYS and not event.keys:
        raise Refusal("keys", "missing or empty", f"a call of {event.f} lists its keys")
    if event.f in POINTS and event.ph != "at":
        raise Refusal("ph", f"{event.ph} on {event.f}", f"{event.f} is a point: write ph = at")
    if event.f in WITH_STATE and event.ph != "call" and event.state is None and event.err is None:
        raise Refusal("state", "missing", f"a reading of {event.f} carries its state")
    if event.t_call is not None and event.t_call > event.t:
        raise Refusal("t_call", f"{event.t_call} is after t = {event.t}", "t_call..t is an interval")


def _state(fields: Fields) -> State:
    _only(fields, _STATE_FIELDS, "state.")
    return State(*(integer_field(fields, name, where="state.") for name in names_of(State)))


def _version_hint(form: object) -> str:
    """The remedy for another format. A later version is not a broken file."""
    only = f"this reader knows {FORMAT_1} and {FORMAT} only"
    name, _, known = FORMAT.rpartition("/")
    before, _, version = form.rpartition("/") if isinstance(form, str) else ("", "", "")
    if before != name or not version.isascii() or not version.isdigit() or len(version) > 9:
        return only
    if int(version) > int(known):
        return f"{only}; version {version} is newer than this release: upgrade purgatorio"
    return f"{only}; there is no version {version}"


def _header(fields: Fields) -> Header:
    form = fields.get("format")
    if form not in (FORMAT_1, FORMAT):
        raise Refusal("format", f"{shown(form)} is not {FORMAT!r}", _version_hint(form))
    recorded = _needed(_strings(fields, "recorded"), "recorded")
    for f in recorded:
        if f not in _FUNCTION:
            raise Refusal("recorded", f"{shown(f)} is not a function of this format", "list values of f only")
        if form == FORMAT_1 and f in SINCE_2:
            raise Refusal("recorded", f"{f} is not a function of {FORMAT_1}", f"write format {FORMAT}")
    params = object_field(fields, "params") or {}
    _writable("params", params)
    own = _own(fields, "implementation", "timer", "clock")
    header: Header = _read(Header, fields, recorded=recorded, params=params, x=own)
    if header.clock.unit != "ns":
        why = f"{shown(header.clock.unit)}"
        raise Refusal("clock.unit", why, "times are nanoseconds: convert them and write ns")
    for name, words in (("catch_up", CATCH_UP), ("turn", TURNS)):
        value = getattr(header.timer, name)
        if value is not None and form == FORMAT_1:
            raise Refusal(f"timer.{name}", f"unknown to {FORMAT_1}", f"write format {FORMAT}")
        if value is not None and value not in words:
            raise Refusal(f"timer.{name}", f"{shown(value)}", f"write one of {', '.join(words)}")
    return header


def _read(kind: Any, fields: Fields, where: str = "", **given: object) -> Any:
    """A record, or an object in a record, from its fields, each by its type. `given`: the fields that are known."""
    _only(fields, (*names_of(kind), *_BESIDE.get(kind, ())), where)
    hints = get_type_hints(kind)
    for part in dataclass_fields(kind):
        name, hint = part.name, hints[part.name]
        value: object = None
        if name in given:
            continue
        if hint in (int, int | None):
            value = integer_field(fields, name, 0, where)
        elif hint in (str, str | None):
            value = string_field(fields, name, where)
        elif (inside := object_field(fields, name)) is not None:
            value = _read(hint, inside, f"{name}.")
        if value is not None:
            given[name] = value
        elif part.default is MISSING and part.default_factory is MISSING:
            raise Refusal(where + name, "missing", f"this record needs {where + name!r}")
    return kind(**given)


def _end(fields: Fields) -> End:
    dropped = _needed(integer_field(fields, "dropped", 0), "dropped")
    end: End = _read(End, fields, dropped=dropped, x=_own(fields))
    return end


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line (or row) that is no record: its number, the field, the error, the remedy, and the start of its text.

    Line 0 is the whole file.
    """

    file: str
    line: int
    field: str
    why: str
    hint: str
    text: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        field = "" if self.field == "$" else f"field {self.field!r}: "  # `$` is the whole line
        return f"{where}: {field}{self.why}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Block:
    """The contents of a block of lines: a batch of events, and the records between them with their line numbers."""

    events: pa.RecordBatch
    others: tuple[tuple[int, Header | End], ...]


def parse_lines(file: str, lines: Sequence[Line], broken: Callable[[BrokenLine], None]) -> Block:
    """Parse a block line by line. For a single line, this is faster than the columns of `block`."""
    events: list[tuple[int, Event]] = []
    others: list[tuple[int, Header | End]] = []
    for line in lines:
        try:
            if line.too_long:
                raise Refusal(
                    "$",
                    f"longer than {MAX_LINE_BYTES} bytes",
                    "no record of this format is that long: is this a trace?",
                )
            record = parse_line(line.text)
        except Refusal as refusal:
            broken(refused(file, line, refusal))
            continue
        if isinstance(record, Event):
            events.append((line.number, record))
        else:
            others.append((line.number, record))
    return Block(event_batch(events), tuple(others))


def refused(file: str, line: Line, refusal: Refusal) -> BrokenLine:
    text = line.text[:KEPT_TEXT_BYTES].decode(errors="replace")
    return BrokenLine(file, line.number, refusal.field, refusal.why, refusal.hint, text)
