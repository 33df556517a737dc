"""What every recorded timer run must satisfy, whatever the timer did: shared by the tests of the subjects."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from purgatorio_spec.trace.lines import lines
from purgatorio_spec.trace.parse import parse_line
from purgatorio_spec.trace.record import End, Event, Header


@dataclass(frozen=True)
class ReadRun:
    header: Header
    events: list[Event]
    end: End | None

    def count(self, f: str, ph: str = "ret") -> int:
        return sum(event.f == f and event.ph == ph for event in self.events)

    def ids(self, f: str, ph: str = "ret") -> Counter[str]:
        """How often each timer has an event of this function and phase."""
        return Counter(str(event.id) for event in self.events if event.f == f and event.ph == ph)


def read_run(path: Path) -> ReadRun:
    """Read a JSON-lines trace, each line validated by the spec's parser."""
    records = [parse_line(line.text) for line in lines(path)]
    header, end = records[0], records[-1]
    assert isinstance(header, Header)
    return ReadRun(
        header,
        [record for record in records if isinstance(record, Event)],
        end if isinstance(end, End) else None,
    )


def check_intervals(events: list[Event]) -> None:
    """Tickets and times grow, every return has its own call on its own thread, and no call is left open."""
    assert all(a.i < b.i for a, b in pairwise(events)), "i must be strictly increasing"
    last_t: dict[str, int] = {}
    calls = {event.i: event for event in events if event.ph == "call"}
    for event in events:
        assert event.t >= last_t.get(event.th, event.t), f"time runs backwards on {event.th}"
        last_t[event.th] = event.t
        if event.ph == "ret":
            assert event.c is not None
            call = calls.pop(event.c)
            assert (call.f, call.id, call.th) == (event.f, event.id, event.th)
    assert not calls, f"calls without a return: {list(calls.values())[:3]}"


def check_whole_run(run: ReadRun) -> None:
    check_intervals(run.events)
    assert run.end == End(len(run.events), 0)
    assert {event.f for event in run.events} <= set(run.header.recorded)
    added = {str(e.id) for e in run.events if e.f == "timer_add" and e.ph == "ret" and e.err is None}
    fired = run.ids("timer_fire", "call")
    assert set(fired.values()) == {1}, "no timer fires twice"
    won = {str(e.id) for e in run.events if e.f == "timer_cancel" and e.ph == "ret" and e.out != 0}
    assert added == set(fired) | won, "each timer fired or was cancelled"
    last = run.events[-1]
    assert (last.f, last.ph) == ("quiesce", "at")
    early_ns = run.header.timer.early_ns
    assert early_ns is not None
    deadline = {e.id: e.deadline_t for e in run.events if e.f == "timer_add" and e.ph == "ret"}
    for event in run.events:
        if event.f == "timer_fire" and event.ph == "call":
            deadline_t = deadline[event.id]
            assert deadline_t is not None
            assert event.t >= deadline_t - early_ns, f"{event} is {deadline_t - event.t} ns early"
