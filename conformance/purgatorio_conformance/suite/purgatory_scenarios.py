"""The scenarios for a purgatory on one thread. Each scenario names the clauses that it can break.

If a program may lose a completion, no time-out passes in the program, because an expiry would hide the loss. For
several threads, use `purgatorio stress` and `purgatorio explore`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hypothesis import strategies as st

from purgatorio_conformance.protocol.message import CancelKey, Check, Force, Ready, Register
from purgatorio_conformance.protocol.script import AtGate
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.program import NEVER_NS, CallProgram, Pass, ProgramStep, Scenario
from purgatorio_conformance.suite.timer_scenarios import drawn_scenario

DONE: Final = ("O1", "O2", "O6", "O7")
TIMED: Final = ("T1", "T2", "T3", "T4")


def _waits(operation: str, keys: str, delay_ns: int = NEVER_NS) -> Register:
    return Register(operation, tuple(keys), delay_ns)


def _checks(operation: str, key: str) -> AtGate:
    """Its `on_complete` checks this key."""
    return AtGate("on_complete", operation, (Check(key),))


def _in_the_window(operation: str, key: str) -> AtGate:
    """Its condition comes true, and its event passes, in the midst of its first try, which has read "false"."""
    return AtGate("try_complete", operation, (Ready(operation), Check(key)))


def _ready_before(promise: Promise) -> Iterator[CallProgram]:
    """Ready before it is registered: completed when the registration returns."""
    for keys in ("a", "abc"):
        yield CallProgram(
            f"ready-before-{len(keys)}",
            (Ready("op-0"), _waits("op-0", keys), Check("a"), Ready("op-1"), _waits("op-1", keys)),
        )


def _window(promise: Promise) -> Iterator[CallProgram]:
    """The condition comes true, and its event passes, between the first try and the watching (KAFKA-1952)."""
    for keys in ("a", "abc"):
        yield CallProgram(
            f"window-{len(keys)}", (_in_the_window("op-0", "a"), _waits("op-0", keys), Check("z"))
        )


def _event(promise: Promise) -> Iterator[CallProgram]:
    """Events in vain, the one that matters, and one more; some operations share keys, some do not."""
    yield CallProgram(
        "event",
        (
            _waits("op-0", "a"), _waits("op-1", "ab"), _waits("op-2", "cba"), Check("a"), Ready("op-1"), Check("b"),
            Check("b"), Ready("op-0"), Ready("op-2"), Check("a"), Check("c"), _waits("op-3", "a"), Ready("op-3"),
            Check("a"),
        ),
    )  # fmt: skip


def _expiry(promise: Promise) -> Iterator[CallProgram]:
    """Time-outs on and next to the ends of ticks and levels; some completed before, at and after theirs."""
    tick_ns, size = promise.tick_ns, promise.buckets
    for ticks in (1, 2, size, size + 1):
        delay_ns = ticks * tick_ns
        steps: list[ProgramStep] = [
            Register(f"op-{number}", (f"k{number}",), delay_ns) for number in range(4)
        ]
        steps += [Force("op-0")] if "force" not in promise.lacks else []
        steps += [Pass(tick_ns, ticks - 1), Ready("op-1"), Check("k1"), Pass(tick_ns)]
        steps += [Pass(tick_ns), Ready("op-2"), Check("k2"), Register("op-4", ("k3",), 0)]
        yield CallProgram(f"expiry-{ticks}", tuple(steps))


def _re_entry(promise: Promise) -> Iterator[CallProgram]:
    """`on_complete` checks another key, its own, and one in a circle."""
    for name, then in (("other", "b"), ("own", "a"), ("circle", "a")):
        yield CallProgram(
            f"re-entry-{name}",
            (
                _checks("op-0", then), _waits("op-0", "a"), _checks("op-1", "a"), _waits("op-1", "b"),
                _waits("op-2", "ab"), Ready("op-0"), Ready("op-1"), Ready("op-2"), Check("a"), Check("b"),
                Ready("op-3"), _checks("op-3", "b"), _waits("op-3", "a"),
            ),
        )  # fmt: skip


def _raising(promise: Promise) -> Iterator[CallProgram]:
    """One operation's callback raises: those after it are tried all the same."""
    for f, ready in (("try_complete", ()), ("on_complete", (Ready("op-0"),))):
        yield CallProgram(
            f"raising-in-{f.replace('_', '-')}",
            (
                *(_waits(f"op-{number}", "a") for number in range(3)), AtGate(f, "op-0", fails=True), *ready,
                Ready("op-1"), Ready("op-2"), Check("a"),
            ),
        )  # fmt: skip


def _garbage(promise: Promise) -> Iterator[CallProgram]:
    """Operations complete by one of their keys, again and again, and lie about under the other until a purge."""
    count = min(2 * (promise.purge_interval or 0) + 20, 500)
    steps: list[ProgramStep] = []
    for number in range(count):
        waits = Register(f"op-{number}", ("a", f"other-{number % 7}"), NEVER_NS)
        steps += [waits, Ready(waits.id), Check("a")]
    steps += [Pass(promise.tick_ns), _waits("live", "ab"), Pass(promise.tick_ns)]
    yield CallProgram("garbage", tuple(steps))


@st.composite
def drawn_programs(draw: st.DrawFn, promise: Promise) -> CallProgram:
    """Programs of up to 14 calls over three keys and a few operations."""
    keys = st.sampled_from("abc")
    timeouts = [NEVER_NS, NEVER_NS]
    if "expiry" not in promise.lacks:
        timeouts += [promise.tick_ns * ticks for ticks in (1, promise.buckets, promise.buckets + 1)]
    kinds = ["register", "register", "event", "event", "ready", "check"]
    kinds += [] if "force" in promise.lacks else ["force"]
    acts = "callbacks" not in promise.lacks
    kinds += [] if "expiry" in promise.lacks else ["pass"]
    kinds += [] if "cancel-for-key" in promise.lacks else ["cancel"]
    steps: list[ProgramStep] = []
    made = 0
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=14)):
        some = f"op-{draw(st.integers(0, max(0, made - 1)))}" if made else "op-0"
        if kind == "register":
            name, watched = f"op-{made}", tuple(draw(st.lists(keys, min_size=1, max_size=3, unique=True)))
            delay_ns = draw(st.sampled_from(timeouts))
            ready = draw(st.sampled_from(("", "", "", "before", "window") if acts else ("", "", "before")))
            steps += [Ready(name)] if ready == "before" else []
            steps += [_in_the_window(name, watched[0])] if ready == "window" else []
            if acts and draw(st.sampled_from((False, False, True))):
                steps.append(_checks(name, draw(keys)))
            steps.append(Register(name, watched, delay_ns))
            made += 1
        elif kind == "event":
            steps += [Ready(some), Check(draw(keys))]
        elif kind == "pass":
            steps.append(Pass(promise.tick_ns, draw(st.integers(1, promise.buckets))))
        elif kind == "cancel":
            steps.append(CancelKey(draw(keys)))
        elif kind == "check":
            steps.append(Check(draw(keys)))
        else:
            steps.append(Ready(some) if kind == "ready" else Force(some))
    return CallProgram("drawn", tuple(steps))


PURGATORY_SCENARIOS: Final = (
    Scenario("ready-before", "ready before it registers", ("O1", "O2", "O4", "O7"), _ready_before),
    Scenario("window", "ready while it registers", ("O4", *DONE), _window, ("callbacks",)),
    Scenario("event", "events on one to three keys", ("O4", *DONE, "P2"), _event),
    Scenario("expiry", "time-outs", ("O1", "O3", "O5", "P2", "T5", *TIMED), _expiry, ("expiry",)),
    Scenario("re-entry", "on_complete checks keys", ("O4", *DONE), _re_entry, ("callbacks",)),
    Scenario("raising", "callbacks raise", ("O4", "O1", "O7"), _raising, ("raising", "callbacks")),
    Scenario("garbage", "operations that remain in lists", ("P1", "P2", "P4"), _garbage, ("gauges",)),
    drawn_scenario("O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T3", "T4", "T5"),
)
"""In the order in which they are run."""
