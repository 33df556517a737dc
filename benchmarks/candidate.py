"""`Candidate`: a timer as the workloads see it, ours and peers alike.

Virtual time in whole milliseconds from 0. `add(delay_ms, action)` returns a handle that only the same candidate
understands; `cancel(handle)` is called at most once for a handle, and never after it fired (some peers recycle
handles). `add` and `cancel` may be attributes rather than methods: where a library's own function has the right
shape it is called directly, without a Python function around it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

Action = Callable[[], object]

Handle = Any  # opaque: its own candidate alone looks into it
"""What `add` returns."""


class Candidate(Protocol):
    """One timer with nothing in it, at time 0."""

    @property
    def add(self) -> Callable[[int, Action], Handle]:
        """`add(delay_ms, action)`: run `action` once, `delay_ms` (at least 1) from now; the handle for `cancel`."""

    @property
    def cancel(self) -> Callable[[Handle], object]:
        """`cancel(handle)` of a timer that is pending."""

    def advance(self, now_ms: int) -> None:
        """Let it be `now_ms` and run, on the caller, every action whose deadline is not after that."""

    def next_ms(self) -> int | None:
        """When a driver that sleeps must wake it next; None where nothing is pending."""

    def held(self) -> int:
        """Entries inside, cancelled ones that have not left yet included."""

    def close(self) -> None: ...


def nothing_here() -> Candidate:
    """The `make` of a candidate that plays outside of this process."""
    raise NotImplementedError("it is no timer of this process")


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate by name.

    `build` says what its hot path is: `interpreted`, `compiled` (mypyc), `C`, `Cython`, `Rust`, `JVM`.
    `locked`: safe to share between threads. `virtual`: its time can be injected; where it cannot, only workloads
    without firing use it. `fires`: it is a timer at all (parts of one are measured too). `largest`: the most pending
    timers that it is asked to hold (where cancel is linear). `slow`: takes part in fewer rounds. `module`: what must
    be importable. `why_not`: asked for a reason besides. `outside`: plays a workload by itself, and returns
    nanoseconds an operation; `make` is not called then.
    """

    name: str
    make: Callable[[], Candidate]
    build: str
    ours: bool = False
    locked: bool = False
    virtual: bool = True
    fires: bool = True
    largest: int | None = None
    slow: bool = False
    module: str | None = None
    why_not: Callable[[], str | None] | None = None
    outside: Callable[[object], dict[str, float]] | None = None

    def missing(self) -> str | None:
        """Why it cannot run here, or None."""
        if self.module is not None and find_spec(self.module) is None:
            return f"{self.module} is not installed: pip install 'purgatorio[bench]'"
        return None if self.why_not is None else self.why_not()
