"""A timer with threads of its own, judged in real time: `pytest`. See docs/conformance-suite.md."""

import threading

import pytest

from purgatorio_conformance.subject.plan import PlanShape
from purgatorio_conformance.subject.python_timer import PythonSubject
from purgatorio_conformance.suite.contract import Promise
from purgatorio_spec.trace.record import TimerConstants

MS = 1_000_000


class Adapter:
    """Put your timer in the place of `threading.Timer`."""

    def add(self, delay_ns, task):
        timer = threading.Timer(max(0, delay_ns) / 1e9, task)
        timer.daemon = True
        timer.start()
        return timer

    def cancel(self, handle):
        handle.cancel()

    def stop(self):
        pass


def subject(promise):
    return PythonSubject(
        name="my-threads",
        implementation="my threads",
        profile=promise.profile,
        version_of=lambda: "1.0",
        make=Adapter,
        constants=lambda plan: TimerConstants(tick_ns=MS, early_ns=MS, late_ns=2_000 * MS),
        shape=PlanShape(most_ns=3_600_000 * MS),
    )


@pytest.fixture
def purgatorio_subject():
    return subject


@pytest.mark.purgatorio(kind="subject", promises=[Promise("timer", tick_ns=MS)], seeds=(1, 2), timers=200)
def test_conformance(purgatorio_case):
    purgatorio_case.check()
