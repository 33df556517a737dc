"""What a purgatory is put through, on one thread: named scenarios, each with the clauses that it lets fail.

Where a completion may be lost, time-outs never end: an expiry would hide the loss. What takes two threads is not here:
see `purgatorio stress` and `purgatorio explore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from purgatorio_stress.conformance.contract import Promise
from purgatorio_stress.conformance.purgatory_program import (
    NEVER_NS,
    CancelKey,
    Check,
    Force,
    Pass,
    PurgatoryProgram,
    PurgatoryStep,
    Ready,
    Register,
    Spoil,
)

__all__ = ["PURGATORY_SCENARIOS", "PurgatoryScenario", "drawn_programs"]

DONE: Final = ("O1", "O2", "O6", "O7")
TIMED: Final = ("T1", "T2", "T3", "T4")


@dataclass(frozen=True, slots=True)
class PurgatoryScenario:
    """As `TimerScenario`."""

    name: str
    about: str
    clauses: tuple[str, ...]
    programs: Callable[[Promise], Iterable[PurgatoryProgram]]
    needs: tuple[str, ...] = ()

    def ruled_out(self, promise: Promise) -> str | None:
        """Why it cannot be run, in the subject's own words."""
        lacking = [lack for lack in self.needs if lack in promise.lacks]
        return f"the subject lacks {lacking[0]}: {promise.lacks[lacking[0]]}" if lacking else None


def _ready_before(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Ready before it is registered: completed when the registration returns."""
    for keys in (("a",), ("a", "b", "c"), ("a", "a")):
        yield PurgatoryProgram(
            f"ready-before-{len(keys)}",
            (Register("op-0", keys, ready="before"), Check("a"), Register("op-1", keys, ready="before")),
        )


def _window(promise: Promise) -> Iterator[PurgatoryProgram]:
    """The condition comes true, and its event passes, between the first try and the watching (KAFKA-1952)."""
    for keys in (("a",), ("a", "b", "c")):
        yield PurgatoryProgram(f"window-{len(keys)}", (Register("op-0", keys, ready="window"), Check("z")))


def _event(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Events in vain, the one that matters, and one more; some operations share keys, some do not."""
    yield PurgatoryProgram(
        "event",
        (
            Register("op-0", ("a",)), Register("op-1", ("a", "b")), Register("op-2", ("c", "b", "a")),
            Check("a"), Ready("op-1"), Check("b"), Check("b"), Ready("op-0"), Ready("op-2"), Check("a"),
            Check("c"), Register("op-3", ("a",)), Ready("op-3"), Check("a"),
        ),
    )  # fmt: skip


def _force(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Forced before its event and after it, and twice."""
    yield PurgatoryProgram(
        "force",
        (
            Register("op-0", ("a",)), Force("op-0"), Force("op-0"), Ready("op-0"), Check("a"),
            Register("op-1", ("a",)), Ready("op-1"), Check("a"), Force("op-1"),
        ),
    )  # fmt: skip


def _expiry(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Time-outs on and beside the ends of ticks and levels; some completed before, at and after theirs."""
    tick_ns, size = promise.tick_ns, promise.buckets
    for ticks in (1, 2, size, size + 1):
        delay_ns = ticks * tick_ns
        steps: list[PurgatoryStep] = [
            Register(f"op-{number}", (f"k{number}",), delay_ns) for number in range(4)
        ]
        steps += [Force("op-0")] if "force" not in promise.lacks else []
        steps += [Pass(tick_ns, ticks - 1), Ready("op-1"), Check("k1"), Pass(tick_ns)]
        steps += [Pass(tick_ns), Ready("op-2"), Check("k2"), Register("op-4", ("k3",), 0)]
        yield PurgatoryProgram(f"expiry-{ticks}", tuple(steps))


def _re_entry(promise: Promise) -> Iterator[PurgatoryProgram]:
    """`on_complete` checks another key, its own, and one in a circle."""
    for name, then in (("other", "b"), ("own", "a"), ("circle", "a")):
        yield PurgatoryProgram(
            f"re-entry-{name}",
            (
                Register("op-0", ("a",), then=Check(then)), Register("op-1", ("b",), then=Check("a")),
                Register("op-2", ("a", "b")), Ready("op-0"), Ready("op-1"), Ready("op-2"), Check("a"), Check("b"),
                Register("op-3", ("a",), ready="before", then=Check("b")),
            ),
        )  # fmt: skip


def _raising(promise: Promise) -> Iterator[PurgatoryProgram]:
    """One operation's callback raises: those behind it are tried all the same."""
    for name, then, spoiled in (("try-complete", "", True), ("on-complete", "raise", False)):
        steps: list[PurgatoryStep] = [Register("op-0", ("a",), then=then)]
        steps += [Register(f"op-{number}", ("a",)) for number in (1, 2)]
        steps += [Spoil("op-0") if spoiled else Ready("op-0"), Ready("op-1"), Ready("op-2"), Check("a")]
        yield PurgatoryProgram(f"raising-in-{name}", tuple(steps))


def _cancel_for_key(promise: Promise) -> Iterator[PurgatoryProgram]:
    """What is taken off one key waits under its others."""
    yield PurgatoryProgram(
        "cancel-for-key",
        (
            Register("op-0", ("a",)), Register("op-1", ("a", "b")), Register("op-2", ("b",)), CancelKey("a"),
            CancelKey("nobody"), Ready("op-1"), Ready("op-2"), Check("a"), Check("b"),
        ),
    )  # fmt: skip


def _garbage(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Operations complete by one of their keys, again and again, and lie about under the other until a purge."""
    count = min(2 * (promise.purge_interval or 0) + 20, 500)
    steps: list[PurgatoryStep] = []
    for number in range(count):
        steps += [Register(f"op-{number}", ("a", f"other-{number % 7}")), Ready(f"op-{number}"), Check("a")]
    steps += [Pass(promise.tick_ns), Register("live", ("a", "b")), Pass(promise.tick_ns)]
    yield PurgatoryProgram("garbage", tuple(steps))


@st.composite
def drawn_programs(draw: st.DrawFn, promise: Promise) -> PurgatoryProgram:
    """Programs of up to 14 steps over three keys and a few operations."""
    keys = st.sampled_from("abc")
    timeouts = [NEVER_NS, NEVER_NS]
    if "expiry" not in promise.lacks:
        timeouts += [promise.tick_ns * ticks for ticks in (1, promise.buckets, promise.buckets + 1)]
    kinds = ["register", "register", "event", "event", "ready", "check"]
    kinds += [] if "force" in promise.lacks else ["force"]
    acts = "callbacks" not in promise.lacks
    kinds += [] if "expiry" in promise.lacks else ["pass"]
    kinds += [] if "cancel-for-key" in promise.lacks else ["cancel"]
    steps: list[PurgatoryStep] = []
    made = 0
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=14)):
        some = f"op-{draw(st.integers(0, max(0, made - 1)))}" if made else "op-0"
        if kind == "register":
            watched = tuple(draw(st.lists(keys, min_size=1, max_size=3)))
            ready = draw(
                st.sampled_from(("no", "no", "no", "before", "window") if acts else ("no", "no", "before"))
            )
            then: Check | str = draw(st.sampled_from(("", "", "check") if acts else ("",)))
            steps.append(
                Register(
                    f"op-{made}",
                    watched,
                    draw(st.sampled_from(timeouts)),
                    ready,
                    then=Check(draw(keys)) if then else "",
                )
            )
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
    return PurgatoryProgram("drawn", tuple(steps))


def _drawn_elsewhere(promise: Promise) -> Iterator[PurgatoryProgram]:
    """Its programs come from Hypothesis: see `drawn_programs`."""
    return iter(())


PURGATORY_SCENARIOS: Final = (
    PurgatoryScenario("ready-before", "ready before it registers", ("O4", *DONE), _ready_before),
    PurgatoryScenario("window", "ready while it registers", ("O4", *DONE), _window, ("callbacks",)),
    PurgatoryScenario("event", "events on one to three keys", ("O4", *DONE, "P2"), _event),
    PurgatoryScenario("force", "completed by hand", ("O1", "O2", "O7", "T4"), _force, ("force",)),
    PurgatoryScenario("expiry", "time-outs", ("O1", "O3", "O5", "P2", "T5", *TIMED), _expiry, ("expiry",)),
    PurgatoryScenario("re-entry", "on_complete checks keys", ("O4", *DONE), _re_entry, ("callbacks",)),
    PurgatoryScenario("raising", "callbacks raise", ("O4", "O1", "O7"), _raising, ("raising", "callbacks")),
    PurgatoryScenario(
        "cancel-for-key", "taken off a key", ("O4", "O7", "P2"), _cancel_for_key, ("cancel-for-key",)
    ),
    PurgatoryScenario("garbage", "what is left in lists", ("P1", "P2"), _garbage, ("gauges",)),
    PurgatoryScenario(
        "drawn",
        "programs drawn and shrunk by Hypothesis",
        ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T3", "T4", "T5"),
        _drawn_elsewhere,
    ),
)
"""In the order in which they are run."""
