"""One run of `purgatorio wire`: connects to a broker, runs the scenes, and records a trace."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from purgatorio_spec.failure import Failure
from purgatorio_wire.client.connection import NoAnswer
from purgatorio_wire.client.recorder import WireRecorder
from purgatorio_wire.scene.broker import SceneLost, Second
from purgatorio_wire.scene.broker_probe import look_at
from purgatorio_wire.scene.plan import PlanRun, RunOptions
from purgatorio_wire.trace.file import WireWriter
from purgatorio_wire.trace.record import Declared, WireEvent, WireHeader

MAX_LATE_MS: Final = 60_000


async def record(
    asked: RunOptions,
    path: Path,
    failures: list[Failure],
    told: Callable[[str], None],
    played: Callable[[], None] = lambda: None,
    found: Callable[[str], None] = lambda line: None,
) -> None:
    """Runs the scenes and writes the trace to `path`. Adds to `failures` internal errors, which end a scene or the run
    and leave a complete trace. Raises NoBroker if no broker of the protocol answers.

    `told`, `played` and `found` have the same meaning as in `PlanRun`.

    A run that is stopped from outside leaves a trace without an end record, so no clause is PASS.
    """
    asyncio.get_running_loop().set_exception_handler(_unheard)
    run = f"{int(time.time()):x}{secrets.token_hex(2)}"
    first: list[WireEvent] = []
    writer: list[Callable[[WireEvent], None]] = [first.append]
    recorder = WireRecorder(lambda event: writer[0](event))
    broker = await look_at(asked.address, recorder, asked.declared, run, asked.second, asked.pid)
    broker.made = asked.made
    header = WireHeader(
        run=asked.name or f"wire-{run}",
        broker={
            "address": asked.shown,
            "nodes": broker.nodes,
            "session_ms": broker.session_ms,
            **_second(asked.second),
        },
        versions=broker.offered,
        declared=broker.declared,
        client=_machine(),
        params={"seed": asked.seed, "scenes": [one.name for one in asked.scenes]},
    )
    out = WireWriter(path, header)
    for event in first:
        out.write(event)
    writer[0] = out.write
    playing = PlanRun(broker, recorder, asked, told, played, found, failures)
    try:
        await playing.play()
    except BaseException:
        writer[0] = first.append  # messages of a loop that closes are not part of the trace
        out.abandon()
        raise
    writer[0] = first.append
    out.close(playing.skipped, playing.lost, recorder.dropped)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing of a task of a scene that ended meanwhile: its connections are closed, so the task has failed."""
    if not isinstance(context.get("exception"), NoAnswer | SceneLost):
        loop.default_exception_handler(context)


def _second(second: Second | None) -> Mapping[str, object]:
    """The options of the second broker, for the command that repeats a scene."""
    if second is None:
        return {}
    said: dict[str, object] = {"second": f"{second.address.host}:{second.address.port}"}
    if isinstance(second.stop, int):
        return said | {"second_pid": second.stop}
    go_on = second.go_on if not isinstance(second.go_on, int) else ()
    return said | {"second_stop": shlex.join(second.stop), "second_go_on": shlex.join(go_on)}


def _machine() -> Mapping[str, object]:
    """The properties of this machine that may influence times."""
    return {
        "python": platform.python_version(), "system": platform.system(), "cpus": os.cpu_count() or 0,
        "load": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else [],
    }  # fmt: skip


def declared_of(words: str) -> Declared:
    """Parses `initial-delay=3000,late=100` (constants in milliseconds). Raises ValueError with the reason."""
    declared = Declared()
    names = {"late": "late_ms", "late-topics": "late_topics_ms", "initial-delay": "initial_delay_ms"}
    for word in filter(None, words.split(",")):
        name, _, value = word.strip().partition("=")
        if name not in names or not value.isdecimal() or len(value) > 9:
            raise ValueError(f"{word!r}: write {' or '.join(names)} in ms, such as late=100")
        if name != "initial-delay" and int(value) > MAX_LATE_MS:
            raise ValueError(f"{word!r}: write {MAX_LATE_MS} ms or less")
        declared = replace(declared, **{names[name]: int(value)})
    return declared
