"""A timing wheel with one wrong character, and how to find it: record its calls, judge the record.

Run it, then `purgatorio check toy.jsonl --engine process`. The wheel is the class below; the rest records it.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from purgatorio_spec.trace.record import Event, Header, Implementation, TimerConstants, TraceClock
from purgatorio_spec.trace.writer import TraceWriter

TICK_NS = 1_000_000


class ToyWheel:
    """Eight buckets of one tick each."""

    def __init__(self) -> None:
        self.now, self.buckets = 0, [[] for _ in range(8)]

    # --8<-- the wheel of the README
    def add(self, deadline: int, task: Callable[[], None]) -> None:
        """Deadlines in ticks, less than eight ahead."""
        if deadline <= self.now + 1:
            task()  # already due
        else:
            self.buckets[deadline % 8].append(task)

    def advance(self) -> None:
        """One tick."""
        self.now += 1
        due, self.buckets[self.now % 8] = self.buckets[self.now % 8], []
        for task in due:
            task()

    # --8<-- end


def record(path: Path) -> None:
    """Drive the wheel in virtual time and write the trace."""
    wheel = ToyWheel()
    header = Header(
        run="toy-wheel",
        implementation=Implementation("ToyWheel", "0.1", "Python"),
        profile="netty-hashed-wheel",
        timer=TimerConstants(tick_ns=TICK_NS, wheel_size=8, early_ns=0, late_ns=TICK_NS),
        clock=TraceClock("manual"),
        recorded=("timer_add", "timer_fire", "timer_cancel"),
    )
    with TraceWriter(path, header) as trace:

        def event(ph: str, f: str, **fields: object) -> int:
            trace.write(Event(trace.events, "main", wheel.now * TICK_NS, ph, f, **fields))
            return trace.events - 1

        for number, delay in enumerate((3, 1, 2, 1, 5, 2)):
            task = f"task-{number}"
            deadline = wheel.now + delay

            def fire(task: str = task) -> None:
                event("ret", "timer_fire", id=task, c=event("call", "timer_fire", id=task))

            call = event("call", "timer_add", id=task, delay_ns=delay * TICK_NS)
            wheel.add(deadline, fire)
            event("ret", "timer_add", id=task, c=call, deadline_t=deadline * TICK_NS)
            wheel.advance()
        for _ in range(8):
            wheel.advance()


if __name__ == "__main__":
    record(Path(sys.argv[1] if len(sys.argv) > 1 else "toy.jsonl"))
