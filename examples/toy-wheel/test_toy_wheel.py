"""Holds the wheels to their promises: one test a clause and scenario. The toy fails, its mended twin passes."""

from collections.abc import Callable

import pytest
from toy_wheel import MendedWheel, ToyWheel

from purgatorio_conformance.suite.contract import Promise, TimerFactory

TICK_NS = 1_000_000

PROMISE = Promise(
    "netty-hashed-wheel",
    tick_ns=TICK_NS,
    wheel_size=8,
    early_ns=0,
    late_ns=0,
    longest_delay_ns=7 * TICK_NS,
    subject="toy-wheel",
    version="0.1",
    lacks={
        "cancel": "the toy forgets nothing",
        "size": "the toy counts nothing",
        "between-ticks": "the toy counts in ticks",
        "past": "the toy's deadlines lie ahead",
        "far": "the toy's deadlines lie less than eight ticks ahead",
        "raising": "what a task raises comes out of advance()",
    },
)


class InVirtualTime:
    """The interface of a wheel for the suite: delays and time in nanoseconds."""

    def __init__(self, wheel: ToyWheel) -> None:
        self.wheel = wheel

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """A delay is a deadline from now."""
        self.wheel.add(self.wheel.now + delay_ns // TICK_NS, task)
        return None

    def advance(self, by_ns: int) -> None:
        """Tick by tick."""
        for _ in range(by_ns // TICK_NS):
            self.wheel.advance()


@pytest.mark.purgatorio(promises=[PROMISE])
class TestToyWheel:
    """Fails T1."""

    @pytest.fixture
    def purgatorio_timer(self) -> TimerFactory:
        """A fresh wheel for every program."""
        return lambda promise: InVirtualTime(ToyWheel())

    def test_conformance(self, purgatorio_case) -> None:
        """Made into a test for each clause and scenario by the plugin."""
        purgatorio_case.check()


@pytest.mark.purgatorio(promises=[PROMISE])
class TestMendedWheel:
    """Passes."""

    @pytest.fixture
    def purgatorio_timer(self) -> TimerFactory:
        """A fresh wheel for every program."""
        return lambda promise: InVirtualTime(MendedWheel())

    def test_conformance(self, purgatorio_case) -> None:
        """As above."""
        purgatorio_case.check()
