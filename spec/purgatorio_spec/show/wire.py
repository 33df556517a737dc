"""A wire violation as a counterexample: a lane for each connection, what was sent and answered, the promise, the bound.

Shown are the exchanges that the violation names, and of its scene those that touch the same topics or groups at about
that time, nearest first, up to the limit of any counterexample.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.show.counterexample import SHOWN_ROWS, Counterexample, ShownEvent
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.show.visible import shell_word
from purgatorio_spec.wire.file import WireTrace
from purgatorio_spec.wire.history import integer, items, text
from purgatorio_spec.wire.record import PROFILE, Body, WireEvent
from purgatorio_spec.wire.row import ERRORS

NEAR_NS: Final = 20_000_000_000
_NAMES: Final = ("topic", "name", "group_id")


def counterexamples(trace: WireTrace, run: RunResult) -> dict[CauseKey, Counterexample]:
    """The first violation of each cause, with the events around it."""
    found: dict[CauseKey, Counterexample] = {}
    by_i = {event.i: event for event in trace.events}
    for clause in run.clauses.values():
        for name, cause in clause.causes.items():
            if not cause.examples:
                continue
            violation = cause.examples[0]
            scene = next((by_i[i].scene for i in violation.events if i in by_i), "")
            rows, left = _rows(trace, scene, set(violation.events))
            key = CauseKey(run.file, run.run, clause.clause, name)
            found[key] = Counterexample(
                run.file, run.run, violation, cause.count, rows, left, PROFILE, _again(trace, scene, run.file)
            )
    return found


def _again(trace: WireTrace, scene: str, file: str) -> tuple[str, ...]:
    """The command that plays the scene alone; of a drawn one its program."""
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
    return (*words, f"--declare {said}")


def _rows(trace: WireTrace, scene: str, witnesses: set[int]) -> tuple[tuple[ShownEvent, ...], int]:
    mine = [event for event in trace.events if event.scene == scene and event.ev != "control"]
    chosen = [event for event in mine if event.i in witnesses]
    if not chosen:
        return (), 0
    lines = {event.i: number for number, event in enumerate(trace.events, 2)}
    named = {name for event in chosen for name in _things(event.body)}
    calls = {event.c for event in chosen if event.c is not None} | {e.i for e in chosen if e.ev == "request"}
    last_t = max(event.t for event in chosen)
    related = [
        event
        for event in mine
        if event.t <= last_t and last_t - event.t < NEAR_NS
        and (event.i in witnesses or event.i in calls or event.c in calls or named & set(_things(event.body))
             or (event.c is not None and event.c in _asked(mine, named)) or event.ev == "stimulus")
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


def _asked(events: list[WireEvent], named: set[str]) -> set[int]:
    return {event.i for event in events if event.ev == "request" and named & set(_things(event.body))}


def _lane(event: WireEvent) -> str:
    return event.conn.partition("@")[0] or "beside"


def _things(body: Body | None) -> Iterator[str]:
    """The topics and groups that a body names."""
    if body is None:
        return
    for name in _NAMES:
        if text(body, name):
            yield text(body, name)
    for value in body.values():
        if isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    yield from _things(one)


def words(event: WireEvent) -> str:
    """One event in a few words."""
    body = event.body
    if event.ev == "request":
        return f"{event.api}({_asked_words(event.api or '', body)})"
    if event.ev == "answer":
        return f"= {event.err}" if event.err else f"= {_answer_words(event.api or '', body)}"
    if event.ev == "stimulus":
        return f"{text(body, 'what')} {text(body, 'text')}".strip()
    return f"{event.ev} by {event.by}" if event.by else event.ev


def _asked_words(api: str, body: Body | None) -> str:
    if api == "fetch":
        parts = ", ".join(
            f"{_short(text(topic, 'topic'))}-{integer(part, 'partition')} @{integer(part, 'fetch_offset')}"
            for topic in items(body, "topics") for part in items(topic, "partitions")
        )  # fmt: skip
        return f"{parts}; {integer(body, 'max_wait_ms')} ms, {integer(body, 'min_bytes')} B"
    if api == "produce":
        parts = ", ".join(
            f"{_short(text(topic, 'name'))}-{integer(part, 'index')}"
            for topic in items(body, "topic_data") for part in items(topic, "partition_data")
        )  # fmt: skip
        return f"{parts}; acks {integer(body, 'acks')}"
    if api == "join_group":
        return f"{_short(text(body, 'member_id')) or 'no id'}; {integer(body, 'rebalance_timeout_ms')} ms"
    if api in ("sync_group", "heartbeat"):
        return f"{_short(text(body, 'member_id'))}, {integer(body, 'generation_id')}"
    return ", ".join(dict.fromkeys(_short(name) for name in _things(body)))


def _answer_words(api: str, body: Body | None) -> str:
    if body is None:
        return "unread"
    if api == "fetch":
        said = [
            f"{sum(integer(batch, 'count') for batch in items(part, 'records'))} records"
            if not integer(part, "error_code") else _error(integer(part, "error_code"))
            for topic in items(body, "responses") for part in items(topic, "partitions")
        ]  # fmt: skip
        return ", ".join(said) or _error(integer(body, "error_code"))
    if api == "produce":
        said = [
            f"@{integer(part, 'base_offset')}" if not integer(part, "error_code")
            else _error(integer(part, "error_code"))
            for topic in items(body, "responses") for part in items(topic, "partition_responses")
        ]  # fmt: skip
        return ", ".join(said) or "nothing"
    if api == "join_group" and not integer(body, "error_code"):
        return f"generation {integer(body, 'generation_id')}, leader {_short(text(body, 'leader'))}"
    errors = [_error(error) for error in _errors(body)]
    return ", ".join(dict.fromkeys(errors)) or "no error"


def _errors(body: Mapping[str, object]) -> Iterator[int]:
    if "error_code" in body:
        yield integer(body, "error_code")
    for value in body.values():
        if isinstance(value, list):
            for one in value[:20]:
                if isinstance(one, dict):
                    yield from _errors(one)


def _error(error: int) -> str:
    return f"{ERRORS.get(error, 'error')} {error}" if error else "no error"


def _short(name: str) -> str:
    """The end of a long name, by which those of a scene are told apart."""
    return name if len(name) <= 12 else f"..{name[-8:]}"
