"""Makes the counterexample of a violation on the wire: a column for each connection, with requests and responses.

The counterexample has the requests and responses that the violation names. It also has requests and responses of the
scene about the same topics or groups. If there are too many, those nearest in time are chosen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.show.counterexample import SHOWN_ROWS, Counterexample, ShownEvent
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.show.visible import first_few, shell_word
from purgatorio_wire.history.error_code import ERRORS
from purgatorio_wire.history.history import integer, integers, items, text
from purgatorio_wire.history.log import summed, written_by
from purgatorio_wire.history.scenes import topic_names
from purgatorio_wire.trace.file import WireTrace
from purgatorio_wire.trace.record import BY_NOBODY, PROFILE, SECOND, Body, WireEvent

OF_A_CONNECTION: Final = frozenset({"X1", "X2", "X3"})
"""The clauses for which no other connection matters."""
NEAR_NS: Final = 20_000_000_000
_NAMES: Final = ("topic", "name", "group_id", "key", "transactional_id", "v3_and_below_transactional_id")
_LISTS: Final = ("topic_names", "groups_names", "coordinator_keys")
_OF_PARTS: Final = {
    "fetch_offset": (" @{}", None), "current_leader_epoch": (" epoch {}", -1),
    "partition_max_bytes": (" room {} B", 1 << 20), "offset": (" before {}", None), "timestamp": (" time {}", None),
    "committed_offset": (" @{}", None),
}  # fmt: skip
_OF_TOPICS: Final = {
    "num_partitions": (", partitions {}", -1), "count": (", partitions {}", None),
    "replication_factor": (", replicas {}", -1),
}  # fmt: skip
_OF_REQUESTS: Final = {
    "generation_id": (", {}", None), "generation_id_or_member_epoch": (", {}", None), "acks": ("; acks {}", None),
    "session_timeout_ms": ("; session {} ms", None), "rebalance_timeout_ms": ("; rebalance {} ms", None),
    "max_wait_ms": ("; {} ms", None), "min_bytes": (", {} B", None), "timeout_ms": ("; {} ms", None),
    "isolation_level": ("; committed", 0), "producer_epoch": ("; epoch {}", -1),
    "v3_and_below_producer_epoch": ("; epoch {}", -1), "committed": ("; commits", 0),
    "share_session_epoch": ("; epoch {}", None), "member_epoch": ("; epoch {}", None),
}  # fmt: skip
_ANSWERED: Final = {"low_watermark": (" from {}", None), "offset": (" @{}", None)}
"""By field with a number, its text, and the value that is not shown."""
_ERRORS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")
_TYPES: Final = {0: "gap", 1: "accepts", 2: "releases", 3: "rejects"}
"""The acknowledgement types of share groups."""


def counterexamples(trace: WireTrace, run: RunResult) -> dict[CauseKey, Counterexample]:
    """The first violation of each cause, with the related events."""
    found: dict[CauseKey, Counterexample] = {}
    by_i = {event.i: event for event in trace.events}
    lines = {event.i: number for number, event in enumerate(trace.events, 2)}
    held: dict[str, list[WireEvent]] = {}  # a cache, for scenes with many violations
    for clause in run.clauses.values():
        for name, cause in clause.causes.items():
            if not cause.examples:
                continue
            violation = cause.examples[0]
            scene = next((by_i[i].scene for i in violation.events if i in by_i), "")
            if scene not in held:
                held[scene] = _with_topics(
                    [e for e in trace.events if e.scene == scene and e.ev != "control"]
                )
            mine, witnesses = held[scene], set(violation.events)
            if clause.clause in OF_A_CONNECTION:
                conns = {event.conn for event in mine if event.i in witnesses}
                mine = [event for event in mine if event.conn in conns]
            rows, left = _rows(mine, lines, witnesses)
            if violation.seen.startswith(
                f"{name.replace('-', ' ')} "
            ):  # the value of a field that no row shows
                last = max(witnesses)
                rows = tuple(
                    replace(x, said=f"{x.said}; {violation.seen}") if x.i == last else x for x in rows
                )
            key = CauseKey(run.file, run.run, clause.clause, name)
            found[key] = Counterexample(
                run.file, run.run, violation, cause.count, rows, left, PROFILE, _again(trace, scene, run.file)
            )
    return found


def _again(trace: WireTrace, scene: str, file: str) -> tuple[str, ...]:
    """The command that runs only this scene. For a random scene, the command has its program."""
    header = trace.header
    if header is None:
        return (f"purgatorio check {shell_word(file)}",)
    base = scene.partition("#")[0]
    words = [f"purgatorio wire {shell_word(str(header.broker.get('address', '')))}"]
    program = next(
        (
            text(event.body, "text")
            for event in trace.events
            if event.scene == scene and event.ev == "stimulus" and text(event.body, "what") == "program"
        ),
        "",
    )
    if program:
        words.append(f"--program {shell_word(program)}")
    elif base:
        words.append(f"--only {shell_word(base)}")
    seed = header.params.get("seed")
    if isinstance(seed, int):
        words.append(f"--seed {seed}")
    declared = {
        "late": header.declared.late_ms,
        "late-topics": header.declared.late_topics_ms,
        "initial-delay": header.declared.initial_delay_ms,
    }
    said = ",".join(f"{name}={value}" for name, value in declared.items() if value is not None)
    words.append(f"--declare {said}")
    words += [
        f"--{option} {shell_word(str(header.broker[name]))}"
        for name, option in SECOND.items() if name in header.broker
    ]  # fmt: skip
    return tuple(words)


def _rows(
    mine: list[WireEvent], lines: Mapping[int, int], witnesses: set[int]
) -> tuple[tuple[ShownEvent, ...], int]:
    """The shown rows of one violation, and the number of related events that are left out. `lines`: the line of each
    event in the file."""
    chosen = [event for event in mine if event.i in witnesses]
    if not chosen:
        return (), 0
    named = {name for event in chosen for name in _things(event.body)}
    calls = {event.c for event in chosen if event.c is not None} | {e.i for e in chosen if e.ev == "request"}
    last_t = max(event.t for event in chosen)
    about = {event.i for event in mine if not named.isdisjoint(_things(event.body))}
    related = [
        event
        for event in mine
        if event.t <= last_t and last_t - event.t < NEAR_NS
        and (event.ev == "stimulus" or event.i in witnesses or event.i in calls or event.i in about
             or event.c in calls or event.c in about)
    ]  # fmt: skip
    near = sorted(related, key=lambda event: (event.i not in witnesses, last_t - event.t))[: SHOWN_ROWS // 2]
    shown = sorted(near, key=lambda event: event.i)
    numbers = {event.i: at for at, event in enumerate(shown)}
    ends = {event.c: numbers[event.i] for event in shown if event.c is not None}
    rows = tuple(
        ShownEvent(
            event.i, lines[event.i], _lane(event), event.t,
            "call" if event.ev == "request" else "ret" if event.c is not None else "at",
            event.api or event.ev, None, event.c, (), None, None, None, None, None,
            witness=event.i in witnesses, end_row=ends.get(event.i), said=words(event),
        )
        for event in shown
    )  # fmt: skip
    return rows, len(related) - len(shown)


def _with_topics(events: list[WireEvent]) -> list[WireEvent]:
    """The events with names added to topics that only have ids."""
    names = topic_names(event.body for event in events if event.ev == "answer")

    def named(value: object) -> object:
        if isinstance(value, list):
            return [named(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        body = {name: named(one) for name, one in value.items()}
        known = names.get(text(body, "topic_id"))
        return body if known is None or text(body, "name") or text(body, "topic") else {**body, "name": known}

    return [
        replace(event, body={name: named(one) for name, one in event.body.items()})
        if event.body is not None else event
        for event in events
    ]  # fmt: skip


def _lane(event: WireEvent) -> str:
    return event.conn.partition("@")[0] or "beside"


def _things(body: Body | None) -> Iterator[str]:
    """The topics and groups that a body names."""
    if body is None:
        return
    for name in _NAMES:
        if text(body, name):
            yield text(body, name)
    for name, value in body.items():
        for one in value if isinstance(value, list) else ():
            if isinstance(one, dict) and name != "configs":
                yield from _things(one)
            elif isinstance(one, str) and name in _LISTS:
                yield one


def words(event: WireEvent) -> str:
    body = event.body
    if event.ev == "request":
        return f"{event.api}({_asked_words(body)})"
    if event.ev == "answer" and event.c is None:
        return f"= {integer(body, 'bytes')} bytes, for which no request waits"
    if event.ev == "answer":
        return f"= {event.err}" if event.err else f"= {_answer_words(event.api or '', body)}"
    if event.ev == "stimulus":
        return f"{text(body, 'what')} {text(body, 'text')}".strip()
    return f"{event.ev} by {event.by}" if event.by else event.ev


def _asked_words(body: Body | None) -> str:
    """The text of a request: its members, partitions or names, then its numbers."""
    member = [_short(text(body, "member_id")) or "no id"] if "member_id" in (body or {}) else []
    members = [_short(text(one, "member_id")) for one in items(body, "members")]
    instance = [text(body, "group_instance_id")] if text(body, "group_instance_id") else []
    parts = [
        f"{_short(_topic(topic))}-{_number(part)}{_numbers(_OF_PARTS, part)}{_acknowledged(part)}{_written(part)}"
        for topics in ("topics", "topic_data")
        for topic in items(body, topics)
        for partitions in ("partitions", "partition_data")
        for part in items(topic, partitions)
    ]
    named = [] if parts or member else list(dict.fromkeys(map(_short, _things(body))))
    numbers = _numbers(_OF_REQUESTS, body or {})
    gives = f", gives {count}" if (count := sum(1 for _ in items(body, "assignments"))) else ""
    counts = "".join(_numbers(_OF_TOPICS, topic) for topic in items(body, "topics"))
    return f"{first_few(members or [*member, *instance, *parts, *named])}{counts}{numbers}{gives}".strip(", ")


def _topic(topic: Body) -> str:
    return text(topic, "name") or text(topic, "topic") or text(topic, "topic_id")


def _written(part: Body) -> str:
    """The text of the idempotent producer and the sequence number of the first batch. "" if there is none."""
    by = written_by(items(part, "records"))
    if by == BY_NOBODY:
        return ""
    return f" of producer {by.producer_id} epoch {by.producer_epoch} sequence {by.base_sequence}"


def _acknowledged(part: Body) -> str:
    return "".join(
        f" {_TYPES.get(next(integers(batch, 'acknowledge_types'), -1), 'says')} {_range(batch)}"
        for batch in items(part, "acknowledgement_batches")
    )


def _range(batch: Body) -> str:
    return f"@{integer(batch, 'first_offset')} to {integer(batch, 'last_offset')}"


def _number(part: Body) -> int:
    return next(
        (integer(part, name) for name in ("partition", "index", "partition_index") if name in part), 0
    )


def _numbers(shown: Mapping[str, tuple[str, int | None]], body: Body) -> str:
    """The texts of the numbers in a body that `shown` contains, except usual values."""
    return "".join(
        said.format(integer(body, name))
        for name, (said, usual) in shown.items()
        if name in body and integer(body, name) != usual
    )


def _answer_words(api: str, body: Body | None) -> str:
    if body is None:
        return "unread"
    answered = [
        part
        for topic in items(body, "responses")
        for partitions in ("partitions", "partition_responses")
        for part in items(topic, partitions)
    ]
    if api in ("fetch", "produce"):
        said = [
            _error(error) if (error := integer(part, "error_code"))
            else f"@{integer(part, 'base_offset')}" if api == "produce"
            else f"{summed(items(part, 'records'), 'count')} records"
            for part in answered
        ]  # fmt: skip
        return ", ".join(said) or ("nothing" if api == "produce" else _error(integer(body, "error_code")))
    if api == "share_fetch" and not any(_errors(body)):
        runs = (run for part in answered for run in items(part, "acquired_records"))
        return ", ".join(f"{_range(run)} x{integer(run, 'delivery_count')}" for run in runs) or "nothing"
    if api == "join_group" and not integer(body, "error_code"):
        return f"generation {integer(body, 'generation_id')}, leader {_short(text(body, 'leader'))}"
    errors = [_error(error) for error in _errors(body)]
    parts = (part for topic in items(body, "topics") for part in items(topic, "partitions"))
    numbers = [_numbers(_ANSWERED, part).strip() for part in parts if not integer(part, "error_code")]
    if any(numbers):
        return ", ".join(numbers)
    return ", ".join(dict.fromkeys(errors)) or "no error"


def _errors(body: Mapping[str, object]) -> Iterator[int]:
    yield from (integer(body, name) for name in _ERRORS if name in body)
    for value in body.values():
        if isinstance(value, list):
            for one in value[:20]:
                if isinstance(one, dict):
                    yield from _errors(one)


def _error(error: int) -> str:
    return f"{ERRORS.get(error, 'error')} {error}" if error else "no error"


def _short(name: str) -> str:
    """A name; of a long name, only its end, because the names of a scene differ in their ends."""
    return name if len(name) <= 12 else f"..{name[-8:]}"
