"""A timer of an event loop under the conformance suite: the adapter moves the loop's clock."""

import pytest

from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.event_loop import VirtualLoop

MS = 1_000_000


class Debounce:
    """Put your timer in its place."""

    def __init__(self, loop):
        self.loop = loop

    def later(self, seconds, task):
        return self.loop.call_later(seconds, task)


class Adapter:
    def __init__(self):
        self.loop = VirtualLoop()
        self.timer = Debounce(self.loop)

    def close(self):
        self.loop.close()

    def add(self, delay_ns, task):
        return self.timer.later(delay_ns / 1e9, task)

    def cancel(self, handle):
        handle.cancel()

    def advance(self, by_ns):
        self.loop.advance(by_ns)
        self.loop.settle()


PROMISE = Promise(
    "timer-cancel-barrier",
    tick_ns=MS,
    early_ns=0,
    late_ns=MS,  # after weeks the float of a deadline may be rounded up
    longest_delay_ns=3_600_000 * MS,
    subject="debounce",
    lacks={
        "between-ticks": "a loop's time is a float",
        "far": "a loop's time is a float",
        "raising": "an error goes to the loop's handler",
        "size": "a loop does not count",
    },
)


@pytest.fixture
def purgatorio_timer():
    return lambda promise: Adapter()


@pytest.mark.purgatorio(promises=[PROMISE])
def test_conformance(purgatorio_case):
    purgatorio_case.check()
