"""The messages of `purgatorio-subject/1`: one description for parser, schema and page, and no bytes that crash them."""

import json
from pathlib import Path
from typing import Final, get_args

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docs.makers.marked import listing
from docs.makers.protocol_page import transcripts, updated
from docs.makers.protocol_schema import SCHEMA_FILE, json_schema, schema_text
from purgatorio_conformance.protocol.conversation import Conversation, Misbehaved, VirtualClock
from purgatorio_conformance.protocol.message import (
    CALLS,
    INCOMING,
    REPORTABLE,
    Add,
    Advance,
    Call,
    Cancel,
    CancelKey,
    Check,
    Describe,
    Force,
    Gauge,
    Go,
    Quiesce,
    Ready,
    Register,
    Repeat,
    Reset,
    Start,
    Stop,
    call_line,
    parse_incoming,
)
from purgatorio_conformance.protocol.rule import field_rules
from purgatorio_conformance.subject.contract import FailureKind
from purgatorio_spec.trace.parse import Refusal
from purgatorio_spec.trace.record import MAX_INT, MIN_INT
from purgatorio_spec.trace.recorder import Recorder

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "subject-protocol.md"
MESSAGES = ROOT / "docs" / "measured" / "subject-messages.md"
VALIDATOR: Final = jsonschema.Draft202012Validator(json_schema())

EVERY_CALL: Final[tuple[Call, ...]] = (
    Describe(),
    Start("timer", "virtual", 5),
    Start("purgatory", "real", gates=("try_complete", "x_own")),
    Add("t-0", -5),
    Cancel("t-0"),
    Repeat("p-0", "fixed-rate", 0, 5),
    Reset("t-0", 9),
    Advance(7),
    Register("op-0", ("k0", "k1"), 9),
    Ready("op-0"),
    Check("k0"),
    CancelKey("k0"),
    Force("op-0"),
    Go((0, 7), fail=1),
    Gauge(),
    Quiesce(),
    Stop(),
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 7, 16, 17, -1, MAX_INT, MIN_INT, MAX_INT + 1, MIN_INT - 1, 2**53 - 1, 2**53]),
    st.sampled_from([0.5, 1e300]),
    st.sampled_from(["", "t-0", "x" * 61, "x" * 101, "x" * 201, *REPORTABLE, "timer", "virtual-time"]),
    st.lists(st.sampled_from(["t-0", "timer", "cancel", "timer_fire", 1, None]), max_size=3),
    st.just({}),
)
"""Values that a subject might put into any field."""

NAMES = sorted({rule.name for record in INCOMING.values() for rule in field_rules(record)})
SAYINGS = st.builds(
    lambda name, fields: {"m": name, **fields},
    st.sampled_from([*INCOMING, *CALLS, None, 5]),
    st.dictionaries(st.sampled_from([*NAMES, "x_own", "other", "m"]), VALUES, max_size=6),
)
"""Messages, right and wrong."""


def test_the_published_schema_is_in_step() -> None:
    """`python -m docs.makers.protocol_schema` writes the schema."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_page_is_in_step_and_its_transcripts_are_real_runs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has every message with its fields, and two whole runs. `--refresh-golden` writes it."""
    monkeypatch.chdir(ROOT)
    made = transcripts()
    page = MESSAGES.read_text(encoding="utf-8")
    if request.config.getoption("--refresh-golden"):
        MESSAGES.write_text(updated(page, made), encoding="utf-8")
    assert MESSAGES.read_text(encoding="utf-8") == updated(page, made)


def test_the_lines_of_the_transcript_are_lines_of_the_protocol() -> None:
    """The page, the schema and the run agree: the lines of the page are valid, and a changed line is not."""
    page = MESSAGES.read_text(encoding="utf-8")
    parts = [listing(page, marker).splitlines() for marker in ("transcript", "purgatory")]
    assert [len(part) > 15 for part in parts] == [True, True]
    lines = [line for part in parts for line in part]
    for line in lines:
        VALIDATOR.validate(json.loads(line[2:]))
        assert not VALIDATOR.is_valid(json.loads(line[2:]) | {"surprise": 1})


def test_the_page_names_every_kind_of_misbehaviour() -> None:
    """A reader of a report finds the word there."""
    page = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in get_args(FailureKind) if f"`{kind}`" not in page] == []


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize(
    ("lane", "hold", "steps"), [(0, None, ()), (3, None, ()), (0, 5, ()), (2, None, (0,)), (2, None, (3, 17))]
)
def test_every_call_is_as_the_schema_says(
    call: Call, lane: int, hold: int | None, steps: tuple[int, ...]
) -> None:
    """The driver writes lines that match the published schema. A line fits into one atomic write of a pipe."""
    line = call_line(12, call, lane, hold, steps)
    VALIDATOR.validate(json.loads(line))
    assert len(line) < 4096


def test_no_call_was_forgotten() -> None:
    assert {type(call) for call in EVERY_CALL} == set(CALLS.values())


@given(SAYINGS)
@example({"m": "answer", "n": 0, "out": True})
@example({"m": "answer", "n": 0, "ids": ["t-0"]})
@example({"m": "fired", "id": "t-0", "during": None, "x_own": 0.5})
@example({"m": "leave", "f": "try_complete", "id": "t-0", "out": 1})
def test_schema_and_parser_agree(fields: dict[str, object]) -> None:
    """Both come from the same rules; where they part, one of them is wrong."""
    try:
        parse_incoming(json.dumps(fields).encode())
        taken = True
    except Refusal:
        taken = False
    says = fields.get("m") in list(INCOMING)
    assert taken == (says and VALIDATOR.is_valid(fields)), fields


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
@example(b"")
@example(b"[" * 100_000)
@example(b'{"m":' * 50_000)
@example(b'{"m":"answer","n":' + b"9" * 5_000 + b"}")
@example(b'{"m":"answer","n":NaN}')
@example(b'{"m":"answer","n":1,"err":"\xed\xa0\x80"}')
@example(b'{"m":"answer","n":1,"err":"\\ud800"}')
@example(b'{"m":["answer"]}')
def test_no_bytes_crash_the_parser(line: bytes) -> None:
    """Arbitrary bytes are a message or a Refusal with a bounded text."""
    text = ""
    try:
        parse_incoming(line)
    except Refusal as refusal:
        text = str(refusal)
    assert len(text) < 600


LINES = st.one_of(
    st.binary(max_size=30),
    SAYINGS.map(lambda fields: json.dumps(fields).encode()),
    st.sampled_from(
        [
            b'{"m":"answer","n":%d,"out":1}',
            b'{"m":"answer","n":%d}',
            b'{"m":"answer","n":%d,"err":"E"}',
            b'{"m":"fired","id":"t-0"}',
            b'{"m":"completed","id":"op-0","during":%d}',
            b'{"m":"enter","f":"force_complete","id":"op-0","th":"w"}',
            b'{"m":"leave","f":"force_complete","id":"op-0","th":"w","out":1}',
            b'{"m":"enter","f":"try_complete","id":"op-0"}',
            b'{"m":"leave","f":"try_complete","id":"op-0","out":0}',
            b'{"m":"armed","id":"op-0"}',
            b'{"m":"held","hold":%d,"f":"try_complete","id":"op-0"}',
            b'{"m":"held","hold":0,"f":"x_own","th":"w"}',
        ]
    ),
)


@given(st.lists(st.tuples(st.sampled_from(EVERY_CALL), LINES), max_size=12), st.booleans())
def test_no_conversation_crashes(steps: list[tuple[Call, bytes]], virtual: bool) -> None:
    """Any message in any order is recorded or raises Misbehaved. The recorded events can be written."""
    recorder = Recorder(lambda: 5)
    conversation = Conversation(recorder, REPORTABLE, VirtualClock() if virtual else None)
    for call, line in steps:
        if conversation.free(0) and conversation.makes_sense(call):
            conversation.ask(call)
        number = conversation.calls - 1
        why = ""
        try:
            conversation.hear(line.replace(b"%d", b"%d" % number))
        except Misbehaved as misbehaved:
            why = misbehaved.why
        assert len(why) < 800
    calls = {event.i: event for event in recorder.drain(last=True)}
    returns = [event for event in calls.values() if event.ph == "ret"]
    assert all(event.c in calls and calls[event.c].f == event.f for event in returns)
