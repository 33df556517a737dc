"""Every message of `purgatorio-subject/1` as a typed record: the driver's calls, the subject's answers, and events.

A message is one JSON object in one line of UTF-8. The field `m` names the kind of message. Times are in nanoseconds. A
field with the value null counts as absent. The driver numbers its calls (`n`). The subject answers each call exactly
once, and sends an event for each task, callback or function that it reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, get_args

import orjson

from purgatorio_conformance.protocol.rule import Items, Number, Text, decoded, written
from purgatorio_conformance.subject.plan import MS, accepted
from purgatorio_spec.trace.parse import Refusal, shown
from purgatorio_spec.trace.record import CATCH_UP, TURNS

PROTOCOL: Final = "purgatorio-subject/1"

SPOKEN: Final = (PROTOCOL, f"{PROTOCOL}.1", f"{PROTOCOL}.2")
"""The versions that a subject may answer. 1.1 added gates. 1.2 added periodic tasks, resets and turns. The driver uses
a feature only if the subject has its version."""

MAX_TIME_NS: Final = (1 << 53) - 1
"""The driver sends no larger time or delay unless the subject allows it. A JavaScript number holds this one exactly."""

CAPABILITIES: Final[Mapping[str, str]] = {
    "timer": "knows `add`, and reports `fired`",
    "purgatory": "knows `register`, `ready` and `check`, and reports `completed`",
    "virtual-time": "its time changes only by `start` and `advance`",
    "real-time": "uses a clock of its own, which runs as fast as the clock of the machine",
    "cancel": "knows `cancel`",
    "cancel-barrier": "not needed: declare the profile `timer-cancel-barrier`, which it means without a profile",
    "cancel-key": "knows `cancel_key`; a returned operation has no time-out, and still waits under its other keys, as "
    "in Kafka",
    "cancel-key-all": "in addition to `cancel-key`: a returned operation waits under none of its keys",
    "one-key": "each `register` has one key",
    "no-re-entry": "a callback makes no call, for example because a lock that is not reentrant is held",
    "force": "knows `force`",
    "gauge": "knows `gauge`, and returns its sizes in the answer to `quiesce`",
    "add-again": "accepts an `add` of a known id: a finished or cancelled task starts again, a waiting one is moved",
    "add-same": "the same as `add-again`, but only with the previous delay",
    "fixed-rate": "1.2: knows `repeat` at a fixed rate; `catch_up` declares the rule for missed runs",
    "fixed-delay": "1.2: knows `repeat` with a fixed delay from the end of a run to the next run",
    "reset": "1.2: knows `reset`",
    "reset-same": "1.2: `reset` always has the delay of the task's `add`, as in a watchdog",
    "reset-periodic": "1.2: knows `reset` of a periodic task: its periods begin again, also after a `cancel`",
    "period-first": "1.2: the first run of a `repeat` comes one period after it: `delay_ns` is always the period",
    "lasting": "1.2: inside a run of a task, an `advance` only moves the clock: the run lasts",
    "turns": "1.2: profile `hand-over`: an `advance` runs no callback of an event loop; to the present time, one",
    "amounts": "1.2: profile `hand-over`: an operation may wait for two units (`units` of `register`)",
    "drains": "answers a `stop` with `drain` when all that was due has run, and reports these events before it",
    "halts": "runs nothing after the answer to a `stop` with `drain`; a later `advance` may end with an error",
    "failing": "a callback ends with an error if `go` has `fail`; its thread continues, and `advance` returns no error",
}
"""The capabilities that a subject may declare, and their meanings."""

AGAIN: Final = frozenset({"add-again", "add-same"})
"""A subject with one of these accepts an `add` of a known id."""

REPORTABLE: Final = (
    "try_complete",
    "force_complete",
    "on_complete",
    "on_expiration",
    "timer_add",
    "timer_cancel",
    "timer_fire",
)
"""The functions of the trace format that a subject may report. An undeclared function counts as not recorded."""

STEP: Final = "step"
"""The place of a thread that is paused at a step of its own code, as its call requested."""

_PLACES: Final = Items(Text(100), most=16)
KEYS_MOST: Final = 256
"""The most keys of an operation: a fetch may wait for as many partitions."""

_ID: Final = Text(100)
_TIME: Final = Number(0)
_HOUR_NS: Final = 3_600_000_000_000
_BOUND: Final = Number(0, 1 << 50)
_CALL_NUMBER: Final = Number(0, MAX_TIME_NS)


@dataclass(frozen=True, slots=True)
class Describe:
    """The first call. The answer describes the subject and its promises."""

    protocol: Annotated[str, Text(), "the version that the driver speaks"] = PROTOCOL


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a run without tasks or operations. A second `start` in one process ends the previous run."""

    part: Annotated[str, Text(words=("timer", "purgatory")), "the part of the subject to drive"]
    time: Annotated[
        str, Text(words=("virtual", "real")), "the clock: set by `advance`, or the clock of the machine"
    ]
    now_ns: Annotated[int | None, _TIME, "in virtual time, the time at the start"] = None
    gates: Annotated[
        tuple[str, ...],
        _PLACES,
        "some of the declared places: in this run, each thread that reaches one of them pauses",
    ] = ()


@dataclass(frozen=True, slots=True)
class Add:
    """Run the task `id` when `delay_ns` have passed; report `fired` when it starts."""

    id: Annotated[str, _ID, "the task; a run uses an id again only if `add-again` or `add-same` is declared"]
    delay_ns: Annotated[int, Number(), "the delay from now; negative only if `least_delay_ns` allows it"]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the task `id`."""

    id: Annotated[str, _ID, "a task that was added"]


@dataclass(frozen=True, slots=True)
class Repeat:
    """1.2: run the task `id` periodically until it is cancelled. The first run comes after `delay_ns`. Report each run:
    `fired`, or `enter` and `leave` of `timer_fire`."""

    id: Annotated[str, _ID, "the task; a run never uses the id again"]
    kind: Annotated[
        str,
        Text(words=("fixed-rate", "fixed-delay")),
        "whether a period counts from the previous deadline, or from the end of the previous run",
    ]
    delay_ns: Annotated[int, Number(), "the delay from now to the first run"]
    period_ns: Annotated[int, Number(1), "the time from one run to the next run"]


@dataclass(frozen=True, slots=True)
class Reset:
    """1.2: move the deadline of the task `id` to `delay_ns` from now."""

    id: Annotated[str, _ID, "a task that was added by `add`, or by `repeat` with `reset-periodic`"]
    delay_ns: Annotated[int, Number(), "the delay from now to the new deadline"]


@dataclass(frozen=True, slots=True)
class Advance:
    """Set the virtual time to `now_ns`. Run all tasks that are due, and a purge if it is due, before the answer. The
    time never goes back, but may stay the same."""

    now_ns: Annotated[int, _TIME, "the new time"]


@dataclass(frozen=True, slots=True)
class Register:
    """Try the operation `id`. If it is not completed, watch it under its keys with this time-out."""

    id: Annotated[str, _ID, "the operation; a run never uses the id again"]
    keys: Annotated[tuple[str, ...], Items(_ID, most=KEYS_MOST, least=1), "the keys, each once"]
    delay_ns: Annotated[int, Number(), "its time-out"]
    units: Annotated[
        int | None, Number(1, 2), "1.2, with `amounts`: the number of units that it waits for"
    ] = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The condition of the operation is true from now on. Do not try the operation. `ready` may come before the
    `register` of the operation."""

    id: Annotated[str, _ID, "an operation"]


@dataclass(frozen=True, slots=True)
class Check:
    """An event of `key`: try the operations that are watched under this key."""

    key: Annotated[str, _ID, "a key, watched or not"]


@dataclass(frozen=True, slots=True)
class CancelKey:
    """Return all operations that are watched under `key`, without completing them."""

    key: Annotated[str, _ID, "a key, watched or not"]


@dataclass(frozen=True, slots=True)
class Force:
    """Complete the operation now, ready or not. This call is a `force_complete` of the operation."""

    id: Annotated[str, _ID, "an operation that was registered"]


@dataclass(frozen=True, slots=True)
class Go:
    """Resume these paused threads, all at once. The answer does not wait for the threads."""

    holds: Annotated[tuple[int, ...], Items(_CALL_NUMBER, most=64, least=1), "the numbers from `held`"]
    fail: Annotated[
        int | None,
        Number(0, 1),
        "1: each of these callbacks ends with an error; only if `failing` is declared",
    ] = None


@dataclass(frozen=True, slots=True)
class Gauge:
    """Return the current sizes."""


@dataclass(frozen=True, slots=True)
class Quiesce:
    """Answer when no call or callback is under way, and a purge that is due has ended."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The run has ended: answer, then end with exit status 0 when standard input closes."""

    drain: Annotated[
        int | None, Number(0, 1), "1, only if `drains` or `halts` is declared: tell what runs until the end"
    ] = None


Call = (
    Describe
    | Start
    | Add
    | Cancel
    | Repeat
    | Reset
    | Advance
    | Register
    | Ready
    | Check
    | CancelKey
    | Force
    | Go
    | Gauge
    | Quiesce
    | Stop
)


def _words(kind: type[object]) -> str:
    """The wire name of a message class: `cancel_key` for CancelKey."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


CALLS: Final[Mapping[str, type[Call]]] = {_words(kind): kind for kind in get_args(Call)}
"""The messages of the driver, by `m`."""

_NAME_OF: Final[Mapping[type[Call], str]] = {record: name for name, record in CALLS.items()}

FUNCTION_OF: Final[Mapping[type[Call], str]] = {
    Add: "timer_add", Cancel: "timer_cancel", Reset: "timer_reset", Advance: "advance_clock",
    Register: "try_complete_else_watch", Check: "check_and_complete", CancelKey: "cancel_for_key",
    Force: "force_complete", Gauge: "gauge",
}  # fmt: skip
"""The function of the trace format that records each call as an interval; see also `recorded_as`."""


def wait_call(part: str, name: str, delay_ns: int) -> Add | Register:
    """The call after which a task waits, or an operation with a key of its own."""
    return Add(name, delay_ns) if part == "timer" else Register(name, (name,), delay_ns)


def recorded_as(call: Call) -> str | None:
    """The function of the trace format that records the call as an interval, or None."""
    if isinstance(call, Repeat):
        return f"timer_{call.kind.replace('-', '_')}"
    return FUNCTION_OF.get(type(call))


@dataclass(frozen=True, slots=True)
class Description:
    """The answer to `describe`. If a constant is missing, the clauses that need it are SKIPPED."""

    n: Annotated[int, _CALL_NUMBER, "the number of the call"]
    protocol: Annotated[
        str, Text(), "the version that the subject speaks: `purgatorio-subject/1`, `.../1.1` or `.../1.2`"
    ]
    name: Annotated[str, Text(100), "the name of the implementation"]
    capabilities: Annotated[
        tuple[str, ...], Items(Text(words=tuple(CAPABILITIES)), most=len(CAPABILITIES)), "see below"
    ]
    reports: Annotated[
        tuple[str, ...],
        Items(Text(words=REPORTABLE), most=len(REPORTABLE)),
        "the functions of the trace format that its events report",
    ]
    version: Annotated[str, Text(100), "the version of the implementation"] = ""
    language: Annotated[str, Text(100), "the programming language"] = ""
    profile: Annotated[
        str | None,
        Text(100),
        "the set of clauses: for a purgatory `locked` or `pending-flag`, see [profiles](clauses.md#profiles)"
        "; optional for a timer",
    ] = None
    tick_ns: Annotated[int | None, Number(1, _HOUR_NS), "the tick"] = None
    wheel_size: Annotated[int | None, Number(1, 1 << 31), "the number of buckets of one level"] = None
    early_ns: Annotated[
        int | None, _BOUND, "the largest time before its deadline at which a task may fire"
    ] = None
    early_real_ns: Annotated[
        int | None,
        _BOUND,
        "1.1: the same in real time, if it differs: 1 ms if an add reads a clock of whole milliseconds",
    ] = None
    late_ns: Annotated[
        int | None, _BOUND, "the largest time after its deadline, if `advance` comes at every tick"
    ] = None
    late_real_ns: Annotated[
        int | None,
        _BOUND,
        "1.1: the largest time after its deadline in real time, on an idle machine; after it, no thread may sleep "
        "instead of running the task",
    ] = None
    purge_interval: Annotated[
        int | None,
        _TIME,
        "the number of completed operations that may stay watched. A purge is tested during other calls if the number "
        "is small: in all orders up to 120, at lines of a JVM up to 1,200",
    ] = None
    unit_ns: Annotated[int, Number(1, 1_000_000_000), "all times and delays are multiples of this"] = 1
    least_delay_ns: Annotated[int, Number(), "the smallest delay that is accepted"] = 0
    most_delay_ns: Annotated[int, Number(), "the largest delay that is accepted"] = MAX_TIME_NS
    lanes: Annotated[
        int, Number(1, 16), "the number of concurrent calls: in real time, and in runs with gates"
    ] = 1
    gates: Annotated[tuple[str, ...], _PLACES, "1.1: the places where its threads can be paused"] = ()
    catch_up: Annotated[
        str | None,
        Text(words=CATCH_UP),
        "1.2: the rule of a fixed rate for missed runs: `burst` makes all of them, `once` makes one, `skip` makes none,"
        " `restart` makes one and counts the periods from it. After a jump over the runs at 10, 20 and 30 ms to 35 ms,"
        " runs come at 35, 35, 35 and 40; at 35 and 40; at 40; at 35 and 45",
    ] = None
    turn: Annotated[
        str | None,
        Text(words=TURNS),
        "1.2: if a task adds a task without a delay, the new task runs in the `same` advance, or in the `next`",
    ] = None

    @property
    def grain_ns(self) -> int:
        """The subject's tick, or a millisecond if it declares no tick. At least one unit."""
        return max(self.tick_ns or MS, self.unit_ns)

    @property
    def buckets(self) -> int:
        """Buckets of one level of its wheel; 20 if not declared, to test delays that are difficult for wheels."""
        return self.wheel_size or 20

    def rounded(self, time_ns: int) -> int:
        """The time, rounded up to whole units."""
        return time_ns + -time_ns % self.unit_ns

    def fit(self, delay_ns: int) -> int:
        """The delay, or the next larger or smaller one that the subject accepts; never below zero."""
        return accepted(delay_ns, self.unit_ns, max(0, self.least_delay_ns), self.most_delay_ns)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to any other call, after all events that the call itself caused."""

    n: Annotated[int, _CALL_NUMBER, "the number of the call"]
    out: Annotated[int | None, Number(), "the result; booleans as 0 and 1"] = None
    err: Annotated[str | None, Text(200), "instead of a result: the type of the error"] = None
    ids: Annotated[tuple[str, ...], Items(_ID, most=100_000), "the operations that the call returned"] = ()
    watched: Annotated[int | None, Number(), "the number of entries in the watch lists"] = None
    delayed: Annotated[int | None, Number(), "the number of tasks in the timer"] = None
    keys: Annotated[
        int | None, Number(), "the number of keys with a list; do not read it before `watched`"
    ] = None


@dataclass(frozen=True, slots=True)
class _Event:
    id: Annotated[str, _ID, "the task or operation"]
    during: Annotated[int | None, _CALL_NUMBER, "the number of the call that caused the event"] = None
    th: Annotated[str | None, Text(60), "the thread of the subject, if no call caused the event"] = None


@dataclass(frozen=True, slots=True)
class Fired(_Event):
    """A task starts: `timer_fire`, with its end at once. A periodic task fires at each run."""


@dataclass(frozen=True, slots=True)
class Completed(_Event):
    """The completion callback runs: `on_complete`, inside a `force_complete` that returns true. This is the `force`
    that is under way, or the `force_complete` that was entered. Otherwise the driver adds one to the trace."""


@dataclass(frozen=True, slots=True)
class Expired(_Event):
    """The expiration callback runs: `on_expiration`."""


@dataclass(frozen=True, slots=True)
class Armed(_Event):
    """The time-out of a registered operation was added to the timer: `timer_add`, with the delay of the `register`."""


@dataclass(frozen=True, slots=True)
class Disarmed(_Event):
    """The time-out was cancelled: `timer_cancel`."""


@dataclass(frozen=True, slots=True)
class Enter:
    """A function starts. Events on this thread until its `leave` happen inside this function."""

    f: Annotated[str, Text(words=REPORTABLE), "the function"]
    id: Annotated[str, _ID, "the task or operation"]
    during: Annotated[int | None, _CALL_NUMBER, "the number of the call that caused the event"] = None
    th: Annotated[str | None, Text(60), "the thread of the subject, if no call caused the event"] = None


@dataclass(frozen=True, slots=True)
class Leave:
    """The function that was entered last on this thread has ended."""

    f: Annotated[str, Text(words=REPORTABLE), "the function"]
    id: Annotated[str, _ID, "the task or operation"]
    out: Annotated[int | None, Number(), "the result; booleans as 0 and 1"] = None
    err: Annotated[str | None, Text(200), "the type of the error, if there was one"] = None
    during: Annotated[int | None, _CALL_NUMBER, "the number of the call that caused the event"] = None
    th: Annotated[str | None, Text(60), "the thread of the subject, if no call caused the event"] = None


@dataclass(frozen=True, slots=True)
class Held:
    """A thread is at a pause point. Until a `go` with this number, the thread makes only calls with this `hold`."""

    hold: Annotated[int, _CALL_NUMBER, "the number of this pause, which the subject never uses again"]
    f: Annotated[str, Text(100), "the place"]
    id: Annotated[str | None, _ID, "the task or operation, if there is one"] = None
    during: Annotated[int | None, _CALL_NUMBER, "the number of the call that reached the gate"] = None
    th: Annotated[str | None, Text(60), "the thread of the subject, if no call reached the gate"] = None
    at: Annotated[str | None, Text(200), "the position in the code, for readers"] = None


Happening = Fired | Completed | Expired | Armed | Disarmed | Enter | Leave
Incoming = Description | Answer | Happening | Held

INCOMING: Final[Mapping[str, type[Incoming]]] = {_words(kind): kind for kind in get_args(Incoming)}
"""The messages of the subject, by `m`."""


def call_line(
    number: int, call: Call, lane: int = 0, hold: int | None = None, steps: Sequence[int] = ()
) -> bytes:
    """The line of a call, without its end. `lane` is written only if it is not 0, `hold` if a paused thread makes
    the call, `step` if the thread must pause on its way, and `again` if it must pause twice."""
    fields: dict[str, object] = {"m": _NAME_OF[type(call)], "n": number}
    if hold is not None:
        fields["hold"] = hold
    elif lane:
        fields["lane"] = lane
    fields |= zip(("step", "again"), steps, strict=False)
    return orjson.dumps(fields | written(call))


def call_name(call: Call) -> str:
    return _NAME_OF[type(call)]


def parse_incoming(line: bytes) -> Incoming:
    """Decode a line of the subject. Raises Refusal for any bytes that are no message."""
    try:
        fields: object = orjson.loads(line)
    except orjson.JSONDecodeError as bad:
        raise Refusal(
            "$",
            f"not JSON ({bad.msg})",
            "write one JSON object a line; say everything else on standard error",
        ) from None
    if not isinstance(fields, dict):
        raise Refusal("$", f"a JSON {type(fields).__name__}, not an object", "write one JSON object a line")
    name = fields.get("m")
    record = INCOMING.get(name) if isinstance(name, str) else None
    if record is None:
        raise Refusal(
            "m", f"{shown(name)} is not a message of a subject", f"use one of {', '.join(INCOMING)}"
        )
    return decoded(record, fields)
