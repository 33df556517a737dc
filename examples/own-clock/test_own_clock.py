"""A timer with threads of its own, judged in real time: `pytest`. See docs/conformance-suite.md.

Put your timer in the place of `threading.Timer`, and your values in `subject`.
"""

import threading

import pytest

from purgatorio_conformance.builtin.python_timer import PythonSubject
from purgatorio_conformance.subject.plan import PlanShape
from purgatorio_conformance.suite.contract import Promise
from purgatorio_spec.trace.record import TimerConstants

MS = 1_000_000


class Adapter:
    def add(self, delay_ns, task):
        """Add a task, and return what `cancel` needs. A delay may be zero or below."""
        timer = threading.Timer(max(0, delay_ns) / 1e9, task)
        timer.daemon = True
        timer.start()
        return timer

    def cancel(self, handle):
        """Return False, if the task was too late to be stopped and the timer knows that."""
        handle.cancel()

    def stop(self):
        """Called at the end of a run: end the threads of the timer."""


def subject(promise):
    return PythonSubject(
        name="my-threads",  # in the names of runs and traces
        implementation="my threads",  # in reports, with the version
        version_of=lambda: "1.0",
        profile=promise.profile,
        make=Adapter,  # called at the start of each run
        # The tick, and how early and late a task may start. Without `early_ns`, T1 is SKIPPED; without `late_ns`, T2.
        # 1 us is for times in floating-point seconds: a timer of whole milliseconds may need MS. 2 s is for a busy
        # machine. pytest prints the largest lateness that it saw: choose a smaller bound by it.
        constants=lambda plan: TimerConstants(tick_ns=MS, early_ns=1_000, late_ns=2_000 * MS),
        # Delays: `least_ns`, `most_ns`, multiples of `unit_ns`. An adapter may lack the method `cancel`.
        shape=PlanShape(most_ns=3_600_000 * MS),
        tick_ns=MS,  # many delays are near multiples of it
        threads=4,  # the callers
    )


@pytest.fixture
def purgatorio_subject():
    return subject


# With a method `size` of the adapter, T5 is judged too. With a method `reset`, write `offers=("reset",)`.
PROMISE = Promise("timer", tick_ns=MS, lacks={"size": "threading.Timer does not count its tasks"})


@pytest.mark.purgatorio(kind="subject", promises=[PROMISE], seeds=(1, 2), timers=200)
def test_conformance(purgatorio_case):
    purgatorio_case.check()


# If all of your timer is Python: small programs, in every order of the threads (needs the extra `stress`). In place of
# the first name, which is this module, name the package of your timer.
def test_races(purgatorio_interleavings):
    purgatorio_interleavings("test_own_clock", "test_own_clock:Adapter")
